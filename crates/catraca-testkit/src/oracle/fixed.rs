//! The fixed window of section 1: at most one window is open at a time. It expires as section 8
//! says.

use super::{Micros, whole_second};

/// The terms of a fixed window during one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedTerms {
    /// Units in one window.
    pub limit: i64,
    /// Its length.
    pub span: Micros,
    /// Whether it starts at multiples of its length.
    pub aligned: bool,
}

/// The state of a fixed window: the last window opened, if any.
#[derive(Clone, Debug, Default)]
pub struct FixedWindow {
    last: Option<OpenWindow>,
}

#[derive(Clone, Copy, Debug)]
struct OpenWindow {
    start: Micros,
    used: i64,
    /// The span at the last write.
    span: Micros,
}

impl FixedWindow {
    /// Units free at `now`.
    pub fn free(&self, terms: FixedTerms, now: Micros) -> i64 {
        terms.limit - self.open(terms, now).map_or(0, |window| window.used)
    }

    /// The first instant with `need` units free.
    pub fn ready_at(&self, terms: FixedTerms, need: i64, now: Micros) -> Micros {
        if self.free(terms, now) >= need { now } else { self.full_at(terms, now) }
    }

    /// The end of the open window; `now` if none of it is used.
    pub fn full_at(&self, terms: FixedTerms, now: Micros) -> Micros {
        let used = self.open(terms, now).filter(|window| window.used > 0);
        used.map_or(now, |window| window.start + terms.span)
    }

    /// Uses `units` of the open window, or opens one.
    pub fn charge(&mut self, terms: FixedTerms, units: i64, now: Micros) {
        if units == 0 {
            return;
        }
        let start = if terms.aligned { now - now % terms.span } else { now };
        let window = self.open(terms, now).unwrap_or(OpenWindow { start, used: 0, span: 0 });
        self.write(terms, OpenWindow { used: window.used + units, ..window });
    }

    /// Refunds up to `units` if the window that was open at `instant` still is; returns how many.
    pub fn refund(&mut self, terms: FixedTerms, units: i64, instant: Micros, now: Micros) -> i64 {
        let Some(window) = self.open(terms, now).filter(|window| window.start <= instant) else {
            return 0;
        };
        let given = units.min(window.used);
        if given > 0 {
            self.write(terms, OpenWindow { used: window.used - given, ..window });
        }
        given
    }

    /// Counts a denial of `units`, up to the limit. The used units never decrease: they may be
    /// above a limit that was lowered.
    pub fn count_denied(&mut self, terms: FixedTerms, units: i64, now: Micros) {
        if let Some(window) = self.open(terms, now) {
            let used = window.used.max(terms.limit.min(window.used + units));
            if used > window.used {
                self.write(terms, OpenWindow { used, ..window });
            }
        }
    }

    fn write(&mut self, terms: FixedTerms, window: OpenWindow) {
        self.last = Some(OpenWindow { span: terms.span, ..window });
    }

    /// The last window, unless it has ended under the present span, or expired under the span of
    /// its last write.
    fn open(&self, terms: FixedTerms, now: Micros) -> Option<OpenWindow> {
        let expired = |window: &OpenWindow| now >= whole_second(window.start + window.span);
        self.last.filter(|window| now < window.start + terms.span && !expired(window))
    }
}
