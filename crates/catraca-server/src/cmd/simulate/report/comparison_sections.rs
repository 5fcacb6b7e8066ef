//! The sections of a comparison's report: changed totals, subjects and policies.

use catraca_replay::simulate::{Comparison, DecisionChanges, PolicySummary, SummaryData, sum};

use super::ReportLabels;
use super::sections::{bars, tile};
use crate::cmd::simulate::comparison_text::change;
use crate::cmd::simulate::summary_text::share;
use crate::html::Html;
use crate::render::{count, count_noun};

/// Maximum number of subjects shown per direction.
const TOP: usize = 10;

/// The effect of the change in one sentence.
pub fn lead(html: &mut Html, labels: &ReportLabels, comparison: &Comparison) {
    let denied = &comparison.newly_denied;
    let allowed = &comparison.newly_allowed;
    html.raw("<p class=\"lead\">");
    if denied.requests + allowed.requests == 0 {
        html.text("Every decision stays as it is.").raw("</p>");
        return;
    }
    html.text("With ").element("b", "", &labels.other).text(", ");
    let passes = count_noun(allowed.requests as usize, "request", "requests");
    html.element("b", "n-good", &passes).text(" that ");
    html.text(if allowed.requests == 1 {
        "was denied passes, and "
    } else {
        "were denied pass, and "
    });
    let denies = count_noun(denied.requests as usize, "request", "requests");
    html.element("b", "n-b", &denies).text(" that passed ");
    html.text(if denied.requests == 1 { "is denied." } else { "are denied." }).raw("</p>");
}

/// The main figures, after and before.
pub fn tiles(html: &mut Html, comparison: &Comparison) {
    let before = &comparison.before;
    let after = &comparison.after;
    html.raw("<div class=\"tiles\">");
    let mut decided = |class, name, of: fn(&SummaryData) -> u64| {
        let was = of(before);
        let is = of(after);
        let below = format!("was {} ({})", count(was), change(was, is));
        let whole = sum(&after.allowed) + sum(&after.denied);
        tile(html, class, name, &format!("{} · {}", count(is), share(is, whole)), &below);
    };
    decided("t-a", "allowed", |data| sum(&data.allowed));
    decided("t-d", "denied", |data| sum(&data.denied));
    let was = before.blocks();
    let is = after.blocks();
    let below = format!("was {} ({})", count(was), change(was, is));
    tile(html, "t-b", "blocks started", &count(is), &below);
    let worst = |data: &SummaryData| data.worst.map_or(0, |(_, denied)| denied);
    let below = format!("denied; was {}", count(worst(before)));
    tile(html, "t-w", "worst minute", &count(worst(after)), &below);
    html.raw("</div>");
}

/// The subjects with changed decisions, and the policies side by side.
pub fn changed_decisions(html: &mut Html, comparison: &Comparison) {
    html.raw("<section><h2>What changes</h2><div class=\"two\">");
    column(html, "newly-denied", "Newly denied", &comparison.newly_denied);
    column(html, "newly-allowed", "Newly allowed", &comparison.newly_allowed);
    html.raw("</div>");
    table(html, comparison);
    html.raw("</section>");
}

fn column(html: &mut Html, class: &'static str, title: &str, changes: &DecisionChanges) {
    html.raw("<div class=\"card ").raw(class).raw("\"><h3>").text(title).raw("</h3>");
    if changes.requests == 0 {
        html.element("p", "more", "None.").raw("</div>");
        return;
    }
    let requests = count_noun(changes.requests as usize, "request", "requests");
    let subjects = count_noun(changes.subjects.len(), "subject", "subjects");
    html.element("p", "more", &format!("{requests} of {subjects}"));
    let rows: Vec<_> = changes.subjects.iter().take(TOP).collect();
    let names: Vec<_> = rows.iter().map(|row| format!("{}  {}", row.policy, row.who)).collect();
    let rows = names.iter().zip(&rows).map(|(name, row)| (name.as_str(), row.times));
    bars(html, rows, changes.requests);
    let more = changes.subjects.len().saturating_sub(TOP);
    if more > 0 {
        html.element("p", "more", &format!("and {}", count_noun(more, "more", "more")));
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
        let figures = |side: Option<&PolicySummary>| {
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
