//! In-flight leases: one per concurrent request, ended by its settle or by its own timeout.
//!
//! Every lease has an end, so that a caller that never settles does not keep its unit forever.

use super::{
    Algorithm, CounterPosition, CounterState, LimitOptions, RowFigures, TermsWriter, part_of,
};
use crate::catalog::read::UNITS_MAX;
use crate::cell::{Cell, CellTable};
use crate::codec::wire::{Reader, Writer};
use crate::codec::{CodecError, Fields};
use crate::limit::EXACT_MAX;
use crate::located::{FieldSchema, Node, Report, ValueSchema, scalar};
use crate::time::{Span, Time};

/// At most `limit` leases at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflightTerms {
    /// Leases at once.
    pub limit: i64,
    /// How long a lease lives if it is not released.
    pub hold: Span,
}

impl Algorithm for InflightTerms {
    type Cell = InFlight;
    type RowState = ();

    const FIELD: FieldSchema = FieldSchema::new(
        "inflight",
        ValueSchema::Integer { least: 1, most: UNITS_MAX },
        "the most concurrent requests; a settle returns the lease, or it expires after `hold`; \
         cannot have `block`",
    );
    const OPTIONS: &'static [&'static str] = &[];
    const TAKES_LEASE: bool = true;

    fn read(report: &mut Report, node: Node<'_>, options: LimitOptions) -> Option<Self> {
        let limit = scalar::between(report, node, 1, EXACT_MAX - 1)?;
        if limit > UNITS_MAX {
            let message = format!("{limit} leases are more than the {UNITS_MAX} that a key stores");
            let fix = format!("write at most {UNITS_MAX}");
            report.error("window-too-large", node.location, message, fix);
            return None;
        }
        Some(Self { limit, hold: options.hold })
    }

    fn describe(&self) -> String {
        format!("{} in flight", self.limit)
    }

    fn write_terms(&self, to: &mut impl TermsWriter, lease: u64) {
        to.numbers(&[self.limit, self.hold.micros()]);
        // Eight opaque bytes for the script, which only compares them.
        to.raw(&lease.to_be_bytes());
    }

    /// None: a check takes one lease at any cost.
    fn largest_cost(&self) -> Option<i64> {
        None
    }

    fn share(&self, nodes: i64) -> Self {
        Self { limit: part_of(self.limit, nodes), ..*self }
    }

    fn load<C: CellTable<InFlight>>(
        &self,
        at: CounterPosition<'_>,
        cells: &mut C,
    ) -> CounterState<()> {
        let found = cells.get(at.key, at.now).map(|leases| leases.prune(at.now));
        // `now` does not move: leases store their ends, not the instant of the last write.
        CounterState { state: (), now: at.now, exists: found.is_some() }
    }

    /// Leases that have ended were dropped by `load`.
    fn free<C: CellTable<InFlight>>(&self, (): &(), at: CounterPosition<'_>, cells: &mut C) -> i64 {
        let live = cells.get(at.key, at.now).map_or(0, |leases| leases.live.len() as i64);
        self.limit - live
    }

    fn charge<C: CellTable<InFlight>>(
        &self,
        (): &mut (),
        at: CounterPosition<'_>,
        cells: &mut C,
        _: i64,
        lease: u64,
    ) -> i64 {
        let take = |leases: &mut InFlight| leases.take(self, at.now, lease);
        // `edit` accounts for the new size; without a cell there is nothing to edit. `put` cannot
        // fail here: `counter_slot` has reserved the slot.
        if cells.edit(at.key, at.now, take).is_none() {
            let mut leases = InFlight::default();
            take(&mut leases);
            cells.put(at.key, leases, at.now);
        }
        1
    }

    fn release_lease<C: CellTable<InFlight>>(
        &self,
        at: CounterPosition<'_>,
        cells: &mut C,
        lease: u64,
    ) {
        // `get` instead of `edit`: a removal keeps the allocation, so the cell's size is the same.
        cells.get(at.key, at.now).map(|leases| leases.release(lease));
    }

    fn figures<C: CellTable<InFlight>>(
        &self,
        (): &(),
        at: CounterPosition<'_>,
        cells: &mut C,
        _: i64,
    ) -> RowFigures {
        let leases = cells.get(at.key, at.now);
        let live = leases.as_ref().map_or(0, |leases| leases.live.len() as i64);
        RowFigures {
            limit: Some(self.limit),
            free: self.limit - live,
            // A check always takes one lease, so the units that it needs do not matter.
            fits_at: Some(leases.as_ref().map_or(at.now, |leases| leases.fits_at(self, at.now))),
            full_at: leases.map_or(at.now, |leases| leases.full_at(at.now)),
            windows: Box::default(),
        }
    }
}

/// The live leases of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// End and id of each lease, sorted: earliest end first, equal ends by id. All stores use this
    /// order, so that their encodings are equal.
    pub live: Vec<(Time, u64)>,
}

impl Cell for InFlight {
    const IS_INLINE: bool = false;

    #[inline]
    fn expires_at(&self) -> Time {
        self.live.last().map_or(Time::ZERO, |(end, _)| *end)
    }

    fn heap_bytes(&self) -> usize {
        self.live.capacity() * size_of::<(Time, u64)>()
    }
}

impl InFlight {
    /// Drops the leases that have ended. Returns how many are left.
    pub fn prune(&mut self, now: Time) -> i64 {
        let ended = self.live.partition_point(|(end, _)| *end <= now);
        self.live.drain(..ended);
        self.live.len() as i64
    }

    /// Adds a lease that ends after the `hold` of the policy.
    pub fn take(&mut self, terms: &InflightTerms, now: Time, id: u64) {
        let lease = (now.after(terms.hold), id);
        let index = self.live.partition_point(|other| *other <= lease);
        self.live.insert(index, lease);
    }

    /// Ends a lease early. Returns whether it was live.
    pub fn release(&mut self, id: u64) -> bool {
        let before = self.live.len();
        self.live.retain(|(_, other)| *other != id);
        self.live.len() < before
    }

    /// When one more lease fits: when so many leases have ended that fewer than the limit are left.
    pub fn fits_at(&self, terms: &InflightTerms, now: Time) -> Time {
        // Of `n` leases, `n - limit + 1` must end before one more fits. The last of these has the
        // index `n - limit`; a negative index means that there is room now.
        let excess = self.live.len() as i64 - terms.limit;
        let index = usize::try_from(excess);
        index.ok().and_then(|index| self.live.get(index)).map_or(now, |(end, _)| *end)
    }

    /// When the last lease ends; `now` without leases.
    pub fn full_at(&self, now: Time) -> Time {
        self.live.last().map_or(now, |(end, _)| *end)
    }
}

impl Fields for InFlight {
    fn write(&self, to: &mut Writer<'_>) {
        to.count(self.live.len());
        for (end, id) in &self.live {
            to.time(*end);
            to.long(*id);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        let mut live = Vec::new();
        for _ in 0..from.count()? {
            live.push((from.time("end")?, from.long()?));
        }
        // Leases are found by binary search.
        if !live.is_sorted() {
            return Err(CodecError::Order { field: "live" });
        }
        Ok(Self { live })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_has_the_leases() {
        let terms = InflightTerms { limit: 9, hold: Span::from_secs(1) };
        let mut leases = InFlight::default();
        assert_eq!(leases.heap_bytes(), 0);
        (0..5).for_each(|id| leases.take(&terms, Time::ZERO, id));
        assert!(leases.heap_bytes() >= 5 * 16, "{} bytes", leases.heap_bytes());
    }
}
