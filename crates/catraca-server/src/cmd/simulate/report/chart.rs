//! A timeline as SVG: bars of what passed and what did not, and a mark below each new block.
//!
//! The drawing stretches with the page, so it holds no letters: those stand around it. Every bar
//! tells its figures when pointed at. Must not need a script.

use super::instants::Instants;
use crate::cmd::simulate::summary::{TimeSlot, Timeline};
use crate::html::Html;
use crate::render::count;

/// Units of the drawing.
const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 100.0;
/// The part of a slot that is left free on its right.
const GAP: f64 = 0.16;
/// The most instants written below.
const TICKS: i64 = 7;
/// How far apart they may be, in microseconds: lengths after which people count.
const APART: [i64; 25] = [
    1_000,
    5_000,
    20_000,
    100_000,
    500_000,
    SECOND,
    5 * SECOND,
    10 * SECOND,
    20 * SECOND,
    60 * SECOND,
    2 * 60 * SECOND,
    5 * 60 * SECOND,
    10 * 60 * SECOND,
    20 * 60 * SECOND,
    60 * 60 * SECOND,
    2 * HOUR,
    4 * HOUR,
    12 * HOUR,
    24 * HOUR,
    2 * 24 * HOUR,
    7 * 24 * HOUR,
    28 * 24 * HOUR,
    84 * 24 * HOUR,
    364 * 24 * HOUR,
    3640 * 24 * HOUR,
];
const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;

/// One chart.
pub struct Chart<'a> {
    /// What is shown.
    pub timeline: &'a Timeline,
    /// The most decisions in one slot, here or in a chart to compare with.
    pub peak: u64,
    /// How instants are written.
    pub instants: Instants,
    /// A name beside it, if there are several.
    pub name: &'a str,
    /// What it shows, for those who do not see it.
    pub label: &'a str,
    /// Whether it is the main one.
    pub tall: bool,
}

impl Chart<'_> {
    /// Draws it.
    pub fn draw(&self, html: &mut Html) {
        let top = round_up(self.peak);
        html.raw("<figure class=\"").raw(if self.tall { "chart tall" } else { "chart" });
        html.raw("\">");
        if !self.name.is_empty() {
            html.raw("<figcaption>").element("b", "", self.name);
            html.element("span", "", self.label).raw("</figcaption>");
        }
        html.raw("<div class=\"plot\"><div class=\"scale\" aria-hidden=\"true\">");
        html.element("span", "", &count(top)).element("span", "", "0").raw("</div>");
        self.bars(html, top);
        html.raw("</div>");
        self.ticks(html);
        html.raw("</figure>");
    }

    fn bars(&self, html: &mut Html, top: u64) {
        html.raw("<svg preserveAspectRatio=\"none\" viewBox=\"0 0 ").number(WIDTH).raw(" ");
        html.number(HEIGHT + 8.0).raw("\" role=\"img\" aria-label=\"");
        html.text(&format!("Timeline: {}, per {}", self.label, self.timeline.width())).raw("\">");
        for line in [0.0, HEIGHT / 2.0] {
            html.raw("<path class=\"grid\" d=\"M0 ").number(line).raw("h1000\"/>");
        }
        let slots: Vec<_> = self.timeline.slots().collect();
        let step = WIDTH / slots.len().max(1) as f64;
        for (place, (start, slot)) in slots.iter().enumerate() {
            if slot.decisions() + slot.started > 0 {
                let x = place as f64 * step;
                let when = self.instants.show(*start, self.timeline.width());
                self.slot(html, slot, (x, step), top, &when);
            }
        }
        html.raw("<path class=\"base\" d=\"M0 ").number(HEIGHT).raw("h1000\"/></svg>");
    }

    fn slot(&self, html: &mut Html, slot: &TimeSlot, (x, step): (f64, f64), top: u64, when: &str) {
        html.raw("<g><title>").text(&in_words(slot, when)).raw("</title>");
        rect(html, "hit", (x, 0.0), (step, HEIGHT + 8.0));
        let wide = step * (1.0 - GAP);
        let mut y = HEIGHT;
        let parts = [("a", slot.allowed), ("d", slot.denied), ("b", slot.blocked)];
        for (class, number) in parts.into_iter().filter(|(_, number)| *number > 0) {
            let high = number as f64 / top as f64 * HEIGHT;
            y -= high;
            rect(html, class, (x, y), (wide, high));
        }
        if slot.started > 0 {
            rect(html, "s", (x, HEIGHT + 3.0), (wide.max(4.0), 5.0));
        }
        html.raw("</g>");
    }

    /// Round instants, at the slots that hold them.
    fn ticks(&self, html: &mut Html) {
        let slots: Vec<_> = self.timeline.slots().map(|(start, _)| start).collect();
        let width = self.timeline.width();
        let reach = slots.len() as i64 * width.micros();
        let apart = APART.into_iter().find(|apart| reach / apart < TICKS).unwrap_or(i64::MAX);
        let apart = apart.max(width.micros());
        html.raw("<div class=\"ticks\" aria-hidden=\"true\">");
        for (place, start) in slots.iter().enumerate() {
            let passed = start.micros().rem_euclid(apart);
            if passed < width.micros() {
                html.raw("<span style=\"left:").number(place as f64 * 100.0 / slots.len() as f64);
                html.raw("%\">").text(&self.instants.show(*start, width)).raw("</span>");
            }
        }
        html.raw("</div>");
    }
}

fn rect(html: &mut Html, class: &'static str, (x, y): (f64, f64), (wide, high): (f64, f64)) {
    html.raw("<rect class=\"").raw(class).raw("\" x=\"").number(x).raw("\" y=\"").number(y);
    html.raw("\" width=\"").number(wide).raw("\" height=\"").number(high).raw("\"/>");
}

/// The figures of a slot.
fn in_words(slot: &TimeSlot, when: &str) -> String {
    let all = [
        (slot.allowed, "allowed"),
        (slot.denied, "denied over the limit"),
        (slot.blocked, "denied while blocked"),
        (slot.started, if slot.started == 1 { "block started" } else { "blocks started" }),
    ];
    let all = all.iter().filter(|(number, _)| *number > 0);
    let all: Vec<_> = all.map(|(number, what)| format!("{} {what}", count(*number))).collect();
    format!("{when}: {}", all.join(", "))
}

/// The next number that people find round.
fn round_up(number: u64) -> u64 {
    let mut unit = 1_u64;
    loop {
        for factor in [1, 2, 3, 4, 5, 6, 8] {
            if unit.saturating_mul(factor) >= number {
                return unit.saturating_mul(factor);
            }
        }
        unit = unit.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_on_round_numbers() {
        let shown = [0, 1, 2, 3, 6, 11, 49, 51, 1_200, u64::MAX].map(round_up);
        assert_eq!(shown, [1, 1, 2, 3, 6, 20, 50, 60, 2_000, u64::MAX]);
    }

    #[test]
    fn a_slot_tells_what_there_was() {
        let slot = TimeSlot { allowed: 1_200, denied: 0, blocked: 3, started: 1 };
        let expected = "08:00: 1,200 allowed, 3 denied while blocked, 1 block started";
        assert_eq!(in_words(&slot, "08:00"), expected);
    }
}
