//! Meter: reads and charges the counter of one row, for any algorithm.

use crate::algorithm::{Algorithm, CounterPosition, CounterState, RowFigures, SharedBuckets};
use crate::batch::RowCounter;
use crate::cell::{CellStore, CellTable, CounterSlot};
use crate::digest::Key;
use crate::for_each_algorithm;
use crate::limit::Limit;
use crate::policy::OnFailure;
use crate::time::Time;

/// The counter of one row at an instant.
pub struct Meter<'a> {
    limit: &'a Limit,
    /// The key of the counter: the row's own, or that of an overflow cell.
    key: Key,
    /// The buckets of the other tiers that share the counter.
    shared: Option<&'a SharedBuckets>,
    /// Whether the store has no room for a counter of this key. Then `on_full` decides whether an
    /// overflow cell counts, which other keys use too, or nothing does.
    pub is_overflow: bool,
    /// The instant of the row: `now`, or the last write of the counter if that is later. Then the
    /// clock of a shared store was set back.
    pub now: Time,
    state: RowState,
}

macro_rules! row_state {
    (() $($(#[$doc:meta])* $name:ident($terms:ty, $cell:ty) $field:ident;)*) => {
        /// What a row has of its cell, by algorithm.
        enum RowState {
            $($name(<$terms as Algorithm>::RowState),)*
            Unlimited,
        }
    };
}

for_each_algorithm!(row_state);

/// `load!(limit, counter, on_full, cells, now)`: the meter of a limit.
macro_rules! load {
    (
        ($limit:ident, $counter:ident, $on_full:ident, $cells:ident, $now:ident)
        $($(#[$doc:meta])* $name:ident($terms:ty, $cell:ty) $field:ident;)*
    ) => {
        match $limit {
            $(Limit::$name(terms) => {
                let found = FoundCounter::load(terms, $counter, $on_full, $cells, $now);
                // Without a counter nothing is read or charged, as in a row without a limit.
                if found.is_overflow && $on_full != OnFailure::Local {
                    return Meter::without_counter($limit, $counter, true, $now);
                }
                Meter {
                    limit: $limit,
                    key: found.key,
                    shared: $counter.shared,
                    is_overflow: found.is_overflow,
                    now: found.counter.now,
                    state: RowState::$name(found.counter.state),
                }
            })*
            // Nothing is stored, so no overflow cell is needed either.
            Limit::Unlimited => Meter::without_counter($limit, $counter, false, $now),
        }
    };
}

/// `with_counter!(limit, state, terms, state => with_counter, unlimited)`: one `match` over all
/// algorithms.
macro_rules! with_counter {
    (
        ($limit:expr, $state:expr, $bound:ident, $bound_state:pat => $with:expr, $without:expr)
        $($(#[$doc:meta])* $name:ident($terms:ty, $cell:ty) $field:ident;)*
    ) => {
        match ($limit, $state) {
            $((Limit::$name($bound), RowState::$name($bound_state)) => $with,)*
            _ => $without,
        }
    };
}

impl<'a> Meter<'a> {
    /// Finds a counter and advances it to `now`.
    #[inline]
    pub fn read<C: CellStore>(
        limit: &'a Limit,
        counter: RowCounter<'a>,
        on_full: OnFailure,
        cells: &mut C,
        now: Time,
    ) -> Self {
        for_each_algorithm!(load limit, counter, on_full, cells, now)
    }

    /// The meter of a row that counts nothing.
    fn without_counter(
        limit: &'a Limit,
        counter: RowCounter<'a>,
        is_overflow: bool,
        now: Time,
    ) -> Self {
        let RowCounter { key, shared, .. } = counter;
        Self { limit, key, shared, is_overflow, now, state: RowState::Unlimited }
    }

    /// Whether the row has a counter, its own or an overflow cell.
    pub fn is_counted(&self) -> bool {
        !matches!(self.state, RowState::Unlimited)
    }

    /// Free units; `i64::MAX` if nothing is counted.
    #[inline]
    pub fn free<C: CellStore>(&self, cells: &mut C) -> i64 {
        let at = self.position();
        for_each_algorithm!(with_counter
            self.limit, &self.state, terms, state => terms.free(state, at, cells), i64::MAX
        )
    }

    /// Charges units, or one lease for in-flight rows. Returns the amount charged.
    #[inline]
    pub fn charge<C: CellStore>(&mut self, cells: &mut C, units: i64, lease: u64) -> i64 {
        // A charge of zero writes nothing: it opens no window and moves no expiry. A lease is one
        // unit, independent of `units`.
        if units == 0 && !self.limit.takes_lease() {
            return 0;
        }
        let at = self.position();
        for_each_algorithm!(with_counter
            self.limit, &mut self.state, terms, state =>
                terms.charge(state, at, cells, units, lease), 0
        )
    }

    /// Counts the units of a denied check, for policies with `count_denied`.
    pub fn count_denied<C: CellStore>(&mut self, cells: &mut C, units: i64) {
        if units <= 0 {
            return;
        }
        let at = self.position();
        for_each_algorithm!(with_counter
            self.limit, &mut self.state, terms, state =>
                terms.count_denied(state, at, cells, units), ()
        );
    }

    /// Gives back units of the charge made at `charged_at`. Returns how many.
    pub fn refund<C: CellStore>(&mut self, cells: &mut C, charged_at: Time, units: i64) -> i64 {
        let at = self.position();
        for_each_algorithm!(with_counter
            self.limit, &mut self.state, terms, state =>
                terms.refund(state, at, cells, charged_at, units), 0
        )
    }

    /// Ends a lease of an in-flight row before its time.
    pub fn release_lease<C: CellStore>(&mut self, cells: &mut C, lease: u64) {
        let at = self.position();
        for_each_algorithm!(with_counter
            self.limit, &self.state, terms, _ => terms.release_lease(at, cells, lease), ()
        );
    }

    /// The figures of the row, for a check that needs `need` units.
    #[inline]
    pub fn figures<C: CellStore>(&self, cells: &mut C, need: i64) -> RowFigures {
        let at = self.position();
        let now = self.now;
        for_each_algorithm!(with_counter
            self.limit, &self.state, terms, state => terms.figures(state, at, cells, need),
            RowFigures {
                limit: None,
                free: i64::MAX,
                fits_at: Some(now),
                full_at: now,
                windows: Box::default(),
            }
        )
    }

    #[inline]
    fn position(&self) -> CounterPosition<'a> {
        CounterPosition { key: self.key, now: self.now, shared: self.shared }
    }
}

/// A counter, and where it was found.
struct FoundCounter<S> {
    counter: CounterState<S>,
    key: Key,
    is_overflow: bool,
}

impl<S> FoundCounter<S> {
    #[inline]
    fn load<A: Algorithm<RowState = S>, C: CellTable<A::Cell>>(
        terms: &A,
        counter: RowCounter<'_>,
        on_full: OnFailure,
        cells: &mut C,
        now: Time,
    ) -> Self {
        let RowCounter { key, family, shared } = counter;
        let own = terms.load(CounterPosition { key, now, shared }, cells);
        // Only a key without a counter can be sent to an overflow cell: a counter that exists keeps
        // its cell, however full the memory is. The slot is reserved before the verdict is known; a
        // peek or a denied check leaves it unused, and the next batch drops the reservation.
        if !own.exists
            && let CounterSlot::Overflow(other) = cells.counter_slot(key, family, now)
        {
            // A row that is not counted in the overflow cell must not touch it: batches of all
            // shards wait for each other there.
            if on_full != OnFailure::Local {
                return Self { counter: own, key, is_overflow: true };
            }
            let counter = terms.load(CounterPosition { key: other, now, shared }, cells);
            return Self { counter, key: other, is_overflow: true };
        }
        Self { counter: own, key, is_overflow: false }
    }
}
