//! The parts of a comparison's page: what changes, for how many, and for whom.

use super::Labels;
use super::parts::{bars, tile};
use crate::cmd::simulate::compare::{Comparison, Moved, change};
use crate::cmd::simulate::summary::{Picture, share, sum};
use crate::html::Html;
use crate::render::{count, counted};

/// Subjects shown of each kind.
const TOP: usize = 10;

/// What the change does, in one sentence.
pub fn lead(html: &mut Html, labels: &Labels, comparison: &Comparison) {
    let (denied, allowed) = (&comparison.newly_denied, &comparison.newly_allowed);
    html.raw("<p class=\"lead\">");
    if denied.requests + allowed.requests == 0 {
        html.text("Every decision stays as it is.").raw("</p>");
        return;
    }
    html.text("With ").element("b", "", &labels.other).text(", ");
    let passes = counted(allowed.requests as usize, "request", "requests");
    html.element("b", "n-good", &passes).text(" that ");
    html.text(if allowed.requests == 1 {
        "was denied passes, and "
    } else {
        "were denied pass, and "
    });
    let denies = counted(denied.requests as usize, "request", "requests");
    html.element("b", "n-b", &denies).text(" that passed ");
    html.text(if denied.requests == 1 { "is denied." } else { "are denied." }).raw("</p>");
}

/// The figures that matter, with what they were.
pub fn tiles(html: &mut Html, comparison: &Comparison) {
    let (before, after) = (&comparison.before, &comparison.after);
    html.raw("<div class=\"tiles\">");
    let mut decided = |class, name, of: fn(&Picture) -> u64| {
        let (was, is) = (of(before), of(after));
        let below = format!("was {} ({})", count(was), change(was, is));
        let whole = sum(&after.allowed) + sum(&after.denied);
        tile(html, class, name, &format!("{} · {}", count(is), share(is, whole)), &below);
    };
    decided("t-a", "allowed", |picture| sum(&picture.allowed));
    decided("t-d", "denied", |picture| sum(&picture.denied));
    let (was, is) = (before.blocks(), after.blocks());
    let below = format!("was {} ({})", count(was), change(was, is));
    tile(html, "t-b", "blocks started", &count(is), &below);
    let worst = |picture: &Picture| picture.worst.map_or(0, |(_, denied)| denied);
    let below = format!("denied; was {}", count(worst(before)));
    tile(html, "t-w", "worst minute", &count(worst(after)), &below);
    html.raw("</div>");
}

/// Whose requests are decided otherwise, and the policies side by side.
pub fn moved(html: &mut Html, comparison: &Comparison) {
    html.raw("<section><h2>What changes</h2><div class=\"two\">");
    column(html, "newly-denied", "Newly denied", &comparison.newly_denied);
    column(html, "newly-allowed", "Newly allowed", &comparison.newly_allowed);
    html.raw("</div>");
    table(html, comparison);
    html.raw("</section>");
}

fn column(html: &mut Html, class: &'static str, title: &str, moved: &Moved) {
    html.raw("<div class=\"card ").raw(class).raw("\"><h3>").text(title).raw("</h3>");
    if moved.requests == 0 {
        html.element("p", "more", "Nobody.").raw("</div>");
        return;
    }
    let requests = counted(moved.requests as usize, "request", "requests");
    let subjects = counted(moved.subjects.len(), "subject", "subjects");
    html.element("p", "more", &format!("{requests} of {subjects}"));
    let rows: Vec<_> = moved.subjects.iter().take(TOP).collect();
    let names: Vec<_> = rows.iter().map(|row| format!("{}  {}", row.policy, row.who)).collect();
    let rows = names.iter().zip(&rows).map(|(name, row)| (name.as_str(), row.times));
    bars(html, rows, moved.requests);
    let more = moved.subjects.len().saturating_sub(TOP);
    if more > 0 {
        html.element("p", "more", &format!("and {}", counted(more, "more", "more")));
    }
    html.raw("</div>");
}

fn table(html: &mut Html, comparison: &Comparison) {
    html.raw("<div class=\"card scroll\"><table><thead><tr>");
    for head in ["policy", "allowed", "denied", "while blocked", "blocks"] {
        html.element("th", "", head);
    }
    html.raw("</tr></thead><tbody>");
    for (was, is) in comparison.policies() {
        let Some(policy) = was.or(is) else { continue };
        html.raw("<tr><td>").text(&policy.name);
        match (was, is) {
            (None, _) => html.element("span", "pill", "new"),
            (_, None) => html.element("span", "pill", "gone"),
            _ => html,
        }
        .raw("</td>");
        let figures = |side: Option<&crate::cmd::simulate::summary::PolicyPicture>| {
            side.map_or([0; 4], |p| [p.allowed, p.denied, p.blocked, p.blocks])
        };
        for (was, is) in figures(was).into_iter().zip(figures(is)) {
            html.raw("<td>");
            if was == is {
                html.element("span", "same", &count(is));
            } else {
                html.element("span", "was", &count(was)).text(" → ").element("b", "", &count(is));
            }
            html.raw("</td>");
        }
        html.raw("</tr>");
    }
    html.raw("</tbody></table></div>");
}
