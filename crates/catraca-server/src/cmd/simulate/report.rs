//! `--report`: one page that shows a run, or what a change does, to somebody who was not there.
//!
//! The page is complete in itself: no script, no font, no image from anywhere, and a policy in its
//! head that forbids them. Charts are SVG, written here. Histories are written by strangers, so
//! every text is escaped on its way in. Must not show what a summary does not.

mod changes;
mod chart;
mod instants;
mod parts;
#[cfg(test)]
mod tests;

use super::compare::Comparison;
use super::summary::{Axis, Picture, sum};
use crate::html::Html;
use crate::render::{count, counted};
use chart::Chart;
use instants::Instants;

/// How it looks, in light and in dark.
const STYLE: &str = include_str!("report/page.css");
/// A turnstile.
const MARK: &str = "<svg class=\"mark\" viewBox=\"0 0 32 32\" aria-hidden=\"true\">\
    <path d=\"M9 4v24M9 16h15M9 16l10-10M9 16l10 10\"/>\
    <circle cx=\"9\" cy=\"16\" r=\"3.2\"/></svg>";
/// Nothing but its own style is let in.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'";

/// What the files are called.
pub struct Labels {
    /// The history.
    pub history: String,
    /// The catalog.
    pub catalog: String,
    /// The catalog it is compared with, if any.
    pub other: String,
}

/// The page of one run.
pub fn page(labels: &Labels, picture: &Picture) -> String {
    let axis = picture.timeline.axis_with(&picture.timeline);
    let title = format!("{} under {}", labels.history, labels.catalog);
    let mut html = open(&title);
    head(&mut html, &title, picture, &format!("revision {}", picture.revision));
    parts::lead(&mut html, picture);
    parts::tiles(&mut html, picture);
    timeline(&mut html, &axis, &[("", picture)]);
    html.raw("<section><h2>Policies</h2>");
    for policy in picture.policies.iter().filter(|policy| policy.was_asked()) {
        parts::policy(&mut html, &axis, Instants::of(picture), None, Some(policy));
    }
    html.raw("</section>");
    parts::notes(&mut html, &picture.notes);
    close(html)
}

/// The page of a change.
pub fn comparison(labels: &Labels, comparison: &Comparison) -> String {
    let (before, after) = (&comparison.before, &comparison.after);
    let axis = before.timeline.axis_with(&after.timeline);
    let title = format!("{}: from {} to {}", labels.history, labels.catalog, labels.other);
    let mut html = open(&title);
    let revisions = format!("revision {} → {}", before.revision, after.revision);
    head(&mut html, &title, after, &revisions);
    changes::lead(&mut html, labels, comparison);
    changes::tiles(&mut html, comparison);
    changes::moved(&mut html, comparison);
    timeline(&mut html, &axis, &[("before", before), ("after", after)]);
    html.raw("<section><h2>Policies</h2>");
    let asked = |policy: Option<&super::summary::PolicyPicture>| {
        policy.is_some_and(super::summary::PolicyPicture::was_asked)
    };
    for (was, is) in comparison.policies() {
        if asked(was) || asked(is) {
            parts::policy(&mut html, &axis, Instants::of(after), was, is);
        }
    }
    html.raw("</section>");
    parts::notes(&mut html, &after.notes);
    close(html)
}

fn open(title: &str) -> Html {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"").text(POLICY).raw("\">");
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

fn head(html: &mut Html, title: &str, picture: &Picture, revision: &str) {
    html.raw("<header><p class=\"brand\">").raw(MARK).raw("Catraca simulation</p><h1>");
    html.text(title).raw("</h1><p class=\"facts\">");
    html.element("span", "", &counted(picture.lines as usize, "event", "events"));
    if let Some((first, last)) = picture.span {
        html.element("span", "", &format!("over {}", last.time.since(first.time)));
        html.element("span", "", &format!("{first} to {last}"));
    }
    html.element("span", "", revision);
    if picture.bad > 0 {
        html.element("span", "warn", &counted(picture.bad as usize, "bad line", "bad lines"));
    }
    html.raw("</p></header>");
}

/// All decisions over time: one chart, or one above the other on the same scale.
fn timeline(html: &mut Html, axis: &Axis, pictures: &[(&str, &Picture)]) {
    html.raw("<section><h2>Timeline</h2>");
    let lines: Vec<_> = pictures.iter().map(|(_, picture)| picture.timeline.on(axis)).collect();
    parts::legend(html, &lines[0]);
    html.raw("<div class=\"card\">");
    let peak = lines.iter().map(super::summary::Timeline::peak).max().unwrap_or_default();
    for ((name, picture), timeline) in pictures.iter().zip(&lines) {
        let (allowed, denied) = (sum(&picture.allowed), sum(&picture.denied));
        let label = format!("{} allowed, {} denied", count(allowed), count(denied));
        let instants = Instants::of(picture);
        Chart { timeline, peak, instants, name, label: &label, tall: true }.draw(html);
    }
    html.raw("</div>");
    if let [(_, picture)] = pictures {
        parts::figures(html, &lines[0], Instants::of(picture));
    }
    html.raw("</section>");
}
