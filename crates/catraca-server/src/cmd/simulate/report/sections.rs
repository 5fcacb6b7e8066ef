//! The sections of a report: lead, tiles, policies, denied subjects, notes.

use catraca_replay::simulate::{Axis, PolicySummary, SummaryData, Timeline, sum};

use super::chart::Chart;
use super::instants::InstantFormat;
use crate::cmd::simulate::summary_text::share;
use crate::html::Html;
use crate::render::{count, count_noun};

/// The result of a run in two sentences.
pub fn lead(html: &mut Html, data: &SummaryData) {
    let allowed = sum(&data.allowed);
    let denied = sum(&data.denied);
    html.raw("<p class=\"lead\">");
    if denied == 0 {
        html.text("No request is denied.").raw("</p>");
        return;
    }
    html.element("b", "", &count(denied)).text(" of ").text(&count(allowed + denied));
    html.text(if denied == 1 { " decisions is a denial. " } else { " decisions are denials. " });
    let enforcing = data.policies.iter().filter(|policy| policy.mode == "enforce");
    if let Some(most) = enforcing.max_by_key(|policy| policy.denied).filter(|most| most.denied > 0)
    {
        html.text("Most are made by ").element("b", "", &most.name);
        if let Some((who, times)) = most.top.first() {
            html.text(", above all against ").element("code", "", who);
            html.text(&format!(" ({})", count_noun(*times as usize, "time", "times")));
        }
        html.text(".");
    }
    html.raw("</p>");
}

/// The four main figures.
pub fn tiles(html: &mut Html, data: &SummaryData) {
    let allowed = sum(&data.allowed);
    let denied = sum(&data.denied);
    html.raw("<div class=\"tiles\">");
    tile(html, "t-a", "allowed", &count(allowed), &share(allowed, allowed + denied));
    tile(html, "t-d", "denied", &count(denied), &share(denied, allowed + denied));
    let policies = data.policies.iter().filter(|policy| policy.blocks > 0).count();
    let by = if policies == 0 {
        "by no policy".to_owned()
    } else {
        format!("by {}", count_noun(policies, "policy", "policies"))
    };
    tile(html, "t-b", "blocks started", &count(data.blocks()), &by);
    let (worst, at) = match data.worst {
        Some((at, denied)) => {
            let at = InstantFormat::of(data).minute(at.time);
            (count(denied), format!("denied at {at}"))
        }
        None => ("0".to_owned(), "denied".to_owned()),
    };
    tile(html, "t-w", "worst minute", &worst, &at);
    html.raw("</div>");
}

/// One figure.
pub fn tile(html: &mut Html, class: &'static str, name: &str, figure: &str, below: &str) {
    html.raw("<div class=\"tile ").raw(class).raw("\">");
    html.element("span", "name", name).element("span", "figure", figure);
    html.element("span", "below", below).raw("</div>");
}

/// The legend of the colours, and the duration of a bar.
pub fn legend(html: &mut Html, timeline: &Timeline) {
    html.raw("<ul class=\"legend\">");
    for (class, what) in [
        ("a", "allowed"),
        ("d", "denied over the limit"),
        ("b", "denied while blocked"),
        ("s", "block started"),
    ] {
        html.raw("<li><i class=\"").raw(class).raw("\"></i>").text(what).raw("</li>");
    }
    html.element("li", "", &format!("each bar is {}", timeline.width())).raw("</ul>");
}

/// One policy, before and after.
pub fn policy(
    html: &mut Html,
    axis: &Axis,
    instants: InstantFormat,
    was: Option<&PolicySummary>,
    is: Option<&PolicySummary>,
) {
    let Some(shown) = is.or(was) else { return };
    html.raw("<article class=\"card policy\"><div class=\"title\">");
    html.element("h3", "", &shown.name);
    if shown.mode != "enforce" {
        html.element("span", "pill", shown.mode);
    }
    terms(html, was, is);
    html.raw("</div>");
    let same = was.zip(is).is_some_and(|(was, is)| figures_text(was) == figures_text(is));
    let was = was.filter(|_| !same);
    let sides = if is.is_some() && was.is_some() { ["before", "after"] } else { ["", ""] };
    let sides = sides.into_iter().zip([was, is]);
    let sides: Vec<_> = sides.filter_map(|(name, side)| Some((name, side?))).collect();
    let lines: Vec<_> = sides.iter().map(|(_, side)| side.timeline.on(axis)).collect();
    let peak = lines.iter().map(Timeline::peak).max().unwrap_or_default();
    for ((name, side), timeline) in sides.iter().zip(&lines) {
        if name.is_empty() {
            policy_figures(html, side, instants, same);
        }
        let label = figures_text(side);
        Chart { timeline, peak, instants, name, label: &label, tall: false }.draw(html);
    }
    denied_subjects(html, shown);
    html.raw("</article>");
}

fn terms(html: &mut Html, was: Option<&PolicySummary>, is: Option<&PolicySummary>) {
    html.raw("<span class=\"terms\">");
    match (was, is) {
        (Some(was), Some(is)) if was.terms != is.terms => {
            html.element("del", "", &was.terms).text(" → ").element("ins", "", &is.terms);
        }
        (Some(was), None) => {
            html.element("del", "", &was.terms);
        }
        (_, Some(is)) => {
            html.text(&is.terms);
        }
        (None, None) => {}
    }
    html.raw("</span>");
}

fn policy_figures(html: &mut Html, policy: &PolicySummary, instants: InstantFormat, same: bool) {
    html.raw("<p class=\"figures\">");
    let mut figure = |class, number, what| {
        html.raw("<span>").element("b", class, &count(number)).text(what).raw("</span>");
    };
    figure("n-a", policy.allowed, " allowed");
    figure("n-d", policy.denied - policy.blocked, " over the limit");
    figure("n-b", policy.blocked, " while blocked");
    figure("", policy.blocks, if policy.blocks == 1 { " block" } else { " blocks" });
    if let Some((at, denied)) = policy.worst {
        let worst = format!(" in the worst minute, {}", instants.minute(at.time));
        html.raw("<span>").element("b", "", &count(denied)).text(&worst).raw("</span>");
    }
    if same {
        html.element("span", "", "as before");
    }
    html.raw("</p>");
}

fn figures_text(policy: &PolicySummary) -> String {
    format!(
        "{} allowed, {} denied, {} of them while blocked, {}",
        count(policy.allowed),
        count(policy.denied),
        count(policy.blocked),
        count_noun(policy.blocks as usize, "block", "blocks")
    )
}

fn denied_subjects(html: &mut Html, policy: &PolicySummary) {
    if policy.top.is_empty() {
        return;
    }
    let rows = policy.top.iter().map(|(who, times)| (who.as_str(), *times));
    html.element("h4", "", "Denied most");
    bars(html, rows, policy.denied);
    let more = policy.subjects.saturating_sub(policy.top.len());
    if more > 0 {
        let more = format!("and {} more", count_noun(more, "subject", "subjects"));
        html.element("p", "more", &more);
    }
}

/// A list of names with bars; rows must be sorted with the largest first.
pub fn bars<'a>(html: &mut Html, rows: impl Iterator<Item = (&'a str, u64)>, whole: u64) {
    html.raw("<ol class=\"who\">");
    let mut most = None;
    for (who, times) in rows {
        let of = *most.get_or_insert(times.max(1));
        html.raw("<li>").element("code", "", who);
        html.raw("<span class=\"bar\"><i style=\"width:");
        html.number((times as f64 * 100.0 / of as f64).clamp(0.5, 100.0)).raw("%\"></i></span>");
        html.element("b", "", &count(times)).element("span", "share", &share(times, whole));
        html.raw("</li>");
    }
    html.raw("</ol>");
}

/// The notes.
pub fn notes(html: &mut Html, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    html.raw("<section><h2>Notes</h2><ul class=\"notes\">");
    for note in notes {
        html.element("li", "", note);
    }
    html.raw("</ul></section>");
}

/// A timeline as a table, for screen readers and for copying.
pub fn figures_table(html: &mut Html, timeline: &Timeline, instants: InstantFormat) {
    html.raw("<details><summary>The same in figures</summary><div class=\"scroll\"><table><tr>");
    for head in ["from", "allowed", "over the limit", "while blocked", "blocks started"] {
        html.element("th", "", head);
    }
    html.raw("</tr>");
    for (start, slot) in timeline.slots().filter(|(_, slot)| slot.decisions() > 0) {
        html.raw("<tr>").element("td", "", &instants.show(start, timeline.width()));
        for number in [slot.allowed, slot.denied, slot.blocked, slot.started] {
            html.element("td", "", &count(number));
        }
        html.raw("</tr>");
    }
    html.raw("</table></div></details>");
}
