//! `--report`: the HTML report of a run or of a comparison.
//!
//! The page is self-contained: it has no scripts, and loads no fonts or images; its content
//! security policy forbids them. Charts are inline SVG. Histories contain untrusted text, so every
//! text is escaped.

mod chart;
mod comparison_sections;
mod instants;
mod sections;
#[cfg(test)]
mod tests;

use catraca_replay::simulate::{Axis, Comparison, PolicySummary, SummaryData, Timeline, sum};

use crate::html::Html;
use crate::render::{count, count_noun};
use chart::Chart;
use instants::InstantFormat;

/// The stylesheet, for light and dark mode.
const STYLE: &str = include_str!("report/page.css");
/// The logo.
const LOGO: &str = "<svg class=\"mark\" viewBox=\"0 0 32 32\" aria-hidden=\"true\">\
    <path d=\"M9 4v24M9 16h15M9 16l10-10M9 16l10 10\"/>\
    <circle cx=\"9\" cy=\"16\" r=\"3.2\"/></svg>";
/// The content security policy: inline styles only.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The names of the files, for titles.
pub struct ReportLabels {
    /// The history.
    pub history: String,
    /// The catalog.
    pub catalog: String,
    /// The catalog of `--compare`; empty without one.
    pub other: String,
}

/// The report of one run.
pub fn page(labels: &ReportLabels, data: &SummaryData) -> String {
    let axis = data.timeline.axis_with(&data.timeline);
    let title = format!("{} under {}", labels.history, labels.catalog);
    let mut html = open(&title);
    head(&mut html, &title, data, &format!("revision {}", data.revision));
    sections::lead(&mut html, data);
    sections::tiles(&mut html, data);
    timeline(&mut html, &axis, &[("", data)]);
    html.raw("<section><h2>Policies</h2>");
    for policy in data.policies.iter().filter(|policy| policy.was_checked()) {
        sections::policy(&mut html, &axis, InstantFormat::of(data), None, Some(policy));
    }
    html.raw("</section>");
    sections::notes(&mut html, &data.notes);
    close(html)
}

/// The report of a comparison.
pub fn comparison(labels: &ReportLabels, comparison: &Comparison) -> String {
    let before = &comparison.before;
    let after = &comparison.after;
    let axis = before.timeline.axis_with(&after.timeline);
    let title = format!("{}: from {} to {}", labels.history, labels.catalog, labels.other);
    let mut html = open(&title);
    let revisions = format!("revision {} → {}", before.revision, after.revision);
    head(&mut html, &title, after, &revisions);
    comparison_sections::lead(&mut html, labels, comparison);
    comparison_sections::tiles(&mut html, comparison);
    comparison_sections::changed_decisions(&mut html, comparison);
    timeline(&mut html, &axis, &[("before", before), ("after", after)]);
    html.raw("<section><h2>Policies</h2>");
    let was_checked =
        |policy: Option<&PolicySummary>| policy.is_some_and(PolicySummary::was_checked);
    for (was, is) in comparison.policies() {
        if was_checked(was) || was_checked(is) {
            sections::policy(&mut html, &axis, InstantFormat::of(after), was, is);
        }
    }
    html.raw("</section>");
    sections::notes(&mut html, &after.notes);
    close(html)
}

fn open(title: &str) -> Html {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"")
        .text(CONTENT_SECURITY_POLICY)
        .raw("\">");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    html.raw("<meta name=\"color-scheme\" content=\"light dark\">");
    html.raw("<meta name=\"referrer\" content=\"no-referrer\">");
    html.raw("<title>").text(title).raw("</title><style>\n").raw(STYLE).raw("</style></head>\n");
    html.raw("<body><main>");
    html
}

fn close(mut html: Html) -> String {
    html.raw("<footer>Made by <b>catraca simulate</b> ").text(env!("CARGO_PKG_VERSION"));
    html.raw(": the engine that decides in production, over a recorded history, in virtual time. ");
    html.raw("Private values are pseudonyms. This page loads nothing and sends nothing.</footer>");
    html.raw("</main></body></html>\n");
    html.into_string()
}

fn head(html: &mut Html, title: &str, data: &SummaryData, revision: &str) {
    html.raw("<header><p class=\"brand\">").raw(LOGO).raw("Catraca simulation</p><h1>");
    html.text(title).raw("</h1><p class=\"facts\">");
    html.element("span", "", &count_noun(data.lines as usize, "event", "events"));
    if let Some((first, last)) = data.span {
        html.element("span", "", &format!("over {}", last.time.since(first.time)));
        html.element("span", "", &format!("{first} to {last}"));
    }
    html.element("span", "", revision);
    if data.bad > 0 {
        html.element("span", "warn", &count_noun(data.bad as usize, "bad line", "bad lines"));
    }
    html.raw("</p></header>");
}

/// The timeline of all decisions: one chart per summary, on the same scale.
fn timeline(html: &mut Html, axis: &Axis, summaries: &[(&str, &SummaryData)]) {
    html.raw("<section><h2>Timeline</h2>");
    let lines: Vec<_> = summaries.iter().map(|(_, data)| data.timeline.on(axis)).collect();
    sections::legend(html, &lines[0]);
    html.raw("<div class=\"card\">");
    let peak = lines.iter().map(Timeline::peak).max().unwrap_or_default();
    for ((name, data), timeline) in summaries.iter().zip(&lines) {
        let allowed = sum(&data.allowed);
        let denied = sum(&data.denied);
        let label = format!("{} allowed, {} denied", count(allowed), count(denied));
        let instants = InstantFormat::of(data);
        Chart { timeline, peak, instants, name, label: &label, tall: true }.draw(html);
    }
    html.raw("</div>");
    if let [(_, data)] = summaries {
        sections::figures_table(html, &lines[0], InstantFormat::of(data));
    }
    html.raw("</section>");
}
