//! Draws a timeline as SVG: stacked bars of allowed and denied requests, and a mark below each new
//! block.
//!
//! The SVG is stretched to the width of the page, so labels are HTML beside it. Each bar has a
//! `<title>` with its figures as a tooltip.

use catraca_replay::simulate::{Timeline, TimelineSlot};

use super::instants::InstantFormat;
use crate::html::Html;
use crate::render::count;

/// Size of the drawing in SVG units.
const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 100.0;
/// Space below the bars for the marks of new blocks.
const MARKS_HEIGHT: f64 = 8.0;
/// The empty part of a slot, on its right.
const GAP: f64 = 0.16;
/// Maximum number of labels on the time axis.
const TICKS_MAX: i64 = 7;
/// Distances between labels, in microseconds: round durations.
const TICK_DISTANCES: [i64; 25] = [
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
    /// The data.
    pub timeline: &'a Timeline,
    /// The most decisions in a slot, over all charts that share the scale.
    pub peak: u64,
    /// The format of instants.
    pub instants: InstantFormat,
    /// The name of the chart, if there are several; else empty.
    pub name: &'a str,
    /// The description for screen readers.
    pub label: &'a str,
    /// Whether it is the main chart, which is taller.
    pub tall: bool,
}

impl Chart<'_> {
    /// Draws the chart.
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
        html.number(HEIGHT + MARKS_HEIGHT).raw("\" role=\"img\" aria-label=\"");
        html.text(&format!("Timeline: {}, per {}", self.label, self.timeline.width())).raw("\">");
        for line in [0.0, HEIGHT / 2.0] {
            html.raw("<path class=\"grid\" d=\"M0 ").number(line).raw("h1000\"/>");
        }
        let slots: Vec<_> = self.timeline.slots().collect();
        let step = WIDTH / slots.len().max(1) as f64;
        for (index, (start, slot)) in slots.iter().enumerate() {
            if slot.decisions() + slot.started > 0 {
                let x = index as f64 * step;
                let when = self.instants.show(*start, self.timeline.width());
                let bar = Bar { x, width: step, top };
                draw_slot(html, slot, &bar, &when);
            }
        }
        html.raw("<path class=\"base\" d=\"M0 ").number(HEIGHT).raw("h1000\"/></svg>");
    }

    /// Labels at round instants, each at the slot that contains it.
    fn ticks(&self, html: &mut Html) {
        let slots: Vec<_> = self.timeline.slots().map(|(start, _)| start).collect();
        let width = self.timeline.width();
        let length = slots.len() as i64 * width.micros();
        let distance = TICK_DISTANCES.into_iter().find(|distance| length / distance < TICKS_MAX);
        let distance = distance.unwrap_or(i64::MAX).max(width.micros());
        html.raw("<div class=\"ticks\" aria-hidden=\"true\">");
        for (index, start) in slots.iter().enumerate() {
            // A slot gets a label if it starts less than one width after a round instant.
            let offset = start.micros().rem_euclid(distance);
            if offset < width.micros() {
                html.raw("<span style=\"left:").number(index as f64 * 100.0 / slots.len() as f64);
                html.raw("%\">").text(&self.instants.show(*start, width)).raw("</span>");
            }
        }
        html.raw("</div>");
    }
}

/// The horizontal range of a slot, and the number of decisions at the top of the scale.
struct Bar {
    x: f64,
    width: f64,
    top: u64,
}

/// A rectangle in SVG units; `y` grows downwards.
struct Rect {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Rect {
    fn draw(&self, html: &mut Html, class: &'static str) {
        html.raw("<rect class=\"").raw(class).raw("\" x=\"").number(self.x);
        html.raw("\" y=\"").number(self.y).raw("\" width=\"").number(self.width);
        html.raw("\" height=\"").number(self.height).raw("\"/>");
    }
}

/// Draws the stacked bars of a slot, and a mark below them if a block was started.
fn draw_slot(html: &mut Html, slot: &TimelineSlot, bar: &Bar, when: &str) {
    html.raw("<g><title>").text(&slot_text(slot, when)).raw("</title>");
    // Transparent, over the whole height: the tooltip of a small bar is easy to hit.
    Rect { x: bar.x, y: 0.0, width: bar.width, height: HEIGHT + MARKS_HEIGHT }.draw(html, "hit");
    let width = bar.width * (1.0 - GAP);
    let mut y = HEIGHT;
    let parts = [("a", slot.allowed), ("d", slot.denied), ("b", slot.blocked)];
    for (class, number) in parts.into_iter().filter(|(_, number)| *number > 0) {
        let height = number as f64 / bar.top as f64 * HEIGHT;
        y -= height;
        Rect { x: bar.x, y, width, height }.draw(html, class);
    }
    if slot.started > 0 {
        // At least 4 units wide, to be visible on a long timeline.
        Rect { x: bar.x, y: HEIGHT + 3.0, width: width.max(4.0), height: 5.0 }.draw(html, "s");
    }
    html.raw("</g>");
}

/// The figures of a slot as a sentence, for the tooltip.
fn slot_text(slot: &TimelineSlot, when: &str) -> String {
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

/// The next round number: a small factor times a power of ten.
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
        let rounded = [0, 1, 2, 3, 6, 11, 49, 51, 1_200, u64::MAX].map(round_up);
        assert_eq!(rounded, [1, 1, 2, 3, 6, 20, 50, 60, 2_000, u64::MAX]);
    }

    #[test]
    fn a_slot_tells_what_there_was() {
        let slot = TimelineSlot { allowed: 1_200, denied: 0, blocked: 3, started: 1 };
        let expected = "08:00: 1,200 allowed, 3 denied while blocked, 1 block started";
        assert_eq!(slot_text(&slot, "08:00"), expected);
    }
}
