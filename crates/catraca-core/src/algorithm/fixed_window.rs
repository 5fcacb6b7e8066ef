//! Fixed window: starts with its first charged unit, or at a multiple of its span on the clock, and
//! ends as a whole.

use super::{
    Algorithm, CounterPosition, CounterState, LimitOptions, RowFigures, TermsWriter, part_of,
};
use crate::cell::{Cell, CellTable, Second, instant_of, second_after};
use crate::codec::wire::{Reader, Writer};
use crate::codec::{CodecError, Fields};
use crate::limit::EXACT_MAX;
use crate::located::{FieldSchema, Node, Report, ValueSchema, scalar};
use crate::rate::Rate;
use crate::time::{Span, Time};

/// At most `limit` units from the opening of the window to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedTerms {
    /// Units admitted per window.
    pub limit: i64,
    /// The length of the window.
    pub span: Span,
    /// Whether windows start at multiples of the span instead of at the first unit.
    pub aligned: bool,
}

impl Algorithm for FixedTerms {
    type Cell = FixedWindow;
    /// The open window.
    type RowState = Option<FixedWindow>;

    const FIELD: FieldSchema = FieldSchema::new(
        "fixed",
        ValueSchema::Rate,
        "a fixed window: it starts with its first unit, and at its end the whole limit is free \
         again",
    );
    const OPTION_FIELDS: &'static [FieldSchema] = &[FieldSchema::new(
        "align",
        ValueSchema::Word(|| vec!["clock"]),
        "`\"clock\"`: a `fixed` window starts at multiples of its span on the clock; `fixed` only",
    )];
    const OPTIONS: &'static [&'static str] = &["align", "block", "cost", "count_denied"];

    fn read(report: &mut Report, node: Node<'_>, options: LimitOptions) -> Option<Self> {
        let Rate { amount, per } = scalar::rate(report, node)?;
        Some(Self { limit: amount, span: per, aligned: options.aligned })
    }

    fn describe(&self) -> String {
        format!("fixed {} per {}", self.limit, self.span)
    }

    fn remark(&self) -> &'static str {
        "starts with the first request"
    }

    fn write_terms(&self, to: &mut impl TermsWriter, _: u64) {
        to.numbers(&[self.limit, self.span.micros()]);
        to.raw(&[u8::from(self.aligned)]);
    }

    #[inline]
    fn largest_cost(&self) -> Option<i64> {
        Some(self.limit)
    }

    fn share(&self, nodes: i64) -> Self {
        Self { limit: part_of(self.limit, nodes), ..*self }
    }

    /// One counter has one start, so a window of another length would end that of this one.
    fn counts_apart_from(&self, other: &Self, _: bool) -> bool {
        self.span != other.span
    }

    #[inline]
    fn reported_span(&self) -> Option<Span> {
        Some(self.span)
    }

    fn longest_window(&self) -> Option<Span> {
        Some(self.span)
    }

    fn load<C: CellTable<FixedWindow>>(
        &self,
        at: CounterPosition<'_>,
        cells: &mut C,
    ) -> CounterState<Option<FixedWindow>> {
        let found = cells.get(at.key, at.now).copied();
        let now = found.map_or(at.now, |window| at.now.max(window.start));
        // Judged with the span of this batch: it may differ from the span of the last write.
        let open = found.and_then(|window| window.still_open(self, now));
        // A cell whose window has ended still exists: its next window needs no new slot.
        CounterState { state: open, now, exists: found.is_some() }
    }

    fn free<C: CellTable<FixedWindow>>(
        &self,
        window: &Option<FixedWindow>,
        _: CounterPosition<'_>,
        _: &mut C,
    ) -> i64 {
        self.limit - window.map_or(0, |window| window.used)
    }

    /// Adds units to the open window, or opens one. Negative for a refund.
    fn charge<C: CellTable<FixedWindow>>(
        &self,
        window: &mut Option<FixedWindow>,
        at: CounterPosition<'_>,
        cells: &mut C,
        units: i64,
        _: u64,
    ) -> i64 {
        // A window opens with its first unit, so a charge of zero must not open one.
        if units == 0 {
            return 0;
        }
        let mut open = window.unwrap_or_else(|| FixedWindow::open(self, at.now));
        open.charge(self, units);
        *window = Some(open);
        cells.put(at.key, open, at.now);
        units
    }

    fn count_denied<C: CellTable<FixedWindow>>(
        &self,
        window: &mut Option<FixedWindow>,
        at: CounterPosition<'_>,
        cells: &mut C,
        units: i64,
    ) {
        // `used` becomes `min(limit, used + units)` and is never lowered: `free` is negative if the
        // limit was reduced. `clamp` needs `units >= 0`.
        let counted = self.free(window, at, cells).clamp(0, units);
        self.charge(window, at, cells, counted, 0);
    }

    fn refund<C: CellTable<FixedWindow>>(
        &self,
        state: &mut Option<FixedWindow>,
        at: CounterPosition<'_>,
        cells: &mut C,
        charged_at: Time,
        units: i64,
    ) -> i64 {
        let Some(window) = state else { return 0 };
        // A charge before the start was made in an earlier window, which has ended: its units are
        // free already.
        let units = if charged_at >= window.start { units.min(window.used) } else { 0 };
        -self.charge(state, at, cells, -units, 0)
    }

    fn figures<C: CellTable<FixedWindow>>(
        &self,
        window: &Option<FixedWindow>,
        at: CounterPosition<'_>,
        cells: &mut C,
        need: i64,
    ) -> RowFigures {
        let free = self.free(window, at, cells);
        // An open window in which everything was refunded is as good as none: the quota is full
        // now.
        let used = window.filter(|window| window.used > 0);
        let end = used.map_or(at.now, |window| window.end(self));
        RowFigures {
            limit: Some(self.limit),
            free,
            fits_at: (need <= self.limit).then_some(if free >= need { at.now } else { end }),
            full_at: end,
            windows: Box::default(),
        }
    }
}

/// The state of one fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    /// The start of the window.
    pub start: Time,
    /// Units charged in the window.
    pub used: i64,
    /// When the window ends, under the span of the last write.
    pub forget: Second,
}

impl Cell for FixedWindow {
    #[inline]
    fn expires_at(&self) -> Time {
        instant_of(self.forget)
    }
}

impl FixedWindow {
    /// A new window at `now`, without units.
    pub fn open(terms: &FixedTerms, now: Time) -> Self {
        let start = if terms.aligned { align_down(now, terms.span) } else { now };
        Self { start, used: 0, forget: second_after(start.after(terms.span)) }
    }

    /// The window, unless it has ended by `now`.
    pub fn still_open(self, terms: &FixedTerms, now: Time) -> Option<Self> {
        (now < self.end(terms)).then_some(self)
    }

    /// The end: the first instant after the window.
    pub fn end(&self, terms: &FixedTerms) -> Time {
        self.start.after(terms.span)
    }

    /// Charges units, or gives them back if `units` is negative.
    pub fn charge(&mut self, terms: &FixedTerms, units: i64) {
        // Capped at 2^53, up to which every store counts exactly.
        self.used = (self.used + units).clamp(0, EXACT_MAX);
        self.forget = second_after(self.end(terms));
    }
}

impl Fields for FixedWindow {
    fn write(&self, to: &mut Writer<'_>) {
        to.time(self.start);
        to.number(self.used as u64);
        to.number(u64::from(self.forget));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        Ok(Self {
            start: from.time("start")?,
            used: from.amount("used")?,
            forget: from.small("forget")?,
        })
    }
}

/// The last multiple of the span since the Unix epoch, at or before `now`.
fn align_down(now: Time, span: Span) -> Time {
    Time::from_micros(now.micros() - now.micros().rem_euclid(span.micros()))
}
