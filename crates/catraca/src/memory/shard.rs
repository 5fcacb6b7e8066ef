//! A shard: all the state of the keys that fall into it, behind one lock.
//!
//! What a decision touches comes first, so that it shares cache lines with the lock; the rest is
//! one pointer away. Must not take another shard's lock, nor read a clock.

use std::sync::Arc;

use catraca_core::cell::{Block, Bucket, Cells, Fixed, Leases, Log, Mark, Place, Reference, Watch};
use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::alarms::Alarms;
use super::counter::{Counter, CounterKind};
use super::options::Limits;
use super::overflow::shared_key;
use super::references::References;
use super::table::Table;

/// How many slots of a table are visited in search of room.
pub(super) const RECLAIM_SLOTS: usize = 32;

/// The state of some keys.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Shard {
    pub buckets: Table<Bucket>,
    pub blocks: Table<Block>,
    /// New counters that this batch was promised room for.
    pub promised: u32,
    /// Which kind of counter was looked up last: the one that a new place is asked for.
    pub sought: CounterKind,
    /// Whether there may be shared cells.
    pub overflowing: bool,
    pub logs: Table<Log>,
    pub fixed: Table<Fixed>,
    pub rest: Box<Rest>,
}

/// What is touched less often.
#[derive(Debug)]
pub(super) struct Rest {
    pub leases: Table<Leases>,
    pub watches: Table<Watch>,
    pub marks: Table<Mark>,
    pub references: References,
    pub overflow: Overflow,
    pub limits: Limits,
    pub bits: u32,
    pub alarms: Arc<Alarms>,
}

/// Cells that newcomers share while the shard is full; at most one per family and kind.
#[derive(Debug, Default)]
pub(super) struct Overflow {
    pub buckets: Table<Bucket>,
    pub logs: Table<Log>,
    pub fixed: Table<Fixed>,
    pub leases: Table<Leases>,
}

impl Shard {
    pub fn new(limits: Limits, bits: u32, alarms: Arc<Alarms>) -> Self {
        let rest = Rest {
            leases: Table::default(),
            watches: Table::default(),
            marks: Table::default(),
            references: References::default(),
            overflow: Overflow::default(),
            limits,
            bits,
            alarms,
        };
        Self {
            buckets: Table::default(),
            blocks: Table::default(),
            logs: Table::default(),
            fixed: Table::default(),
            rest: Box::new(rest),
            promised: 0,
            sought: CounterKind::Bucket,
            overflowing: false,
        }
    }

    /// Forgets the promises of the batch before.
    #[inline]
    pub fn begin(&mut self) {
        self.promised = 0;
    }

    /// Bytes of everything that is counted.
    pub fn spent(&self) -> usize {
        self.buckets.bytes()
            + self.logs.bytes()
            + self.fixed.bytes()
            + self.rest.leases.bytes()
            + self.rest.watches.bytes()
    }

    /// Drops forgotten cells of every kind, visiting so many slots of each table.
    pub fn tend(&mut self, visits: usize, now: Time) {
        self.reclaim(visits, now);
        self.blocks.sweep(visits, now, |_| ());
        self.rest.marks.sweep(visits, now, |_| ());
        self.rest.references.sweep(visits, now);
        let overflow = &mut self.rest.overflow;
        overflow.buckets.sweep(visits, now, |_| ());
        overflow.logs.sweep(visits, now, |_| ());
        overflow.fixed.sweep(visits, now, |_| ());
        overflow.leases.sweep(visits, now, |_| ());
    }

    /// Drops forgotten counters of every kind: bytes are bytes, whoever frees them.
    pub fn reclaim(&mut self, visits: usize, now: Time) {
        self.buckets.sweep(visits, now, |_| ());
        self.logs.sweep(visits, now, |_| ());
        self.fixed.sweep(visits, now, |_| ());
        self.rest.leases.sweep(visits, now, |_| ());
        self.rest.watches.sweep(visits, now, |_| ());
    }

    /// Makes room for `more` new counters of a kind below so many bytes; says whether there is.
    pub fn reserve<C: Counter>(&mut self, more: usize, limit: usize, now: Time) -> bool {
        // A spare slot costs nothing new, unless the cell weighs more than its slot.
        let spare = |shard: &mut Self| C::table(shard).spare() >= more;
        if spare(self) && (C::WEIGHTLESS || self.spent() < limit) {
            return true;
        }
        self.reclaim(RECLAIM_SLOTS, now);
        let free = limit.saturating_sub(self.spent());
        if spare(self) {
            return C::WEIGHTLESS || free > 0;
        }
        let table = C::table(self);
        table.grow(more, free, table.slack())
    }

    /// Promises a new counter a place of its own, if there is room for all that were promised.
    fn promise<C: Counter>(&mut self, now: Time) -> bool {
        let promised = self.promised + 1;
        let limit = self.rest.limits.newcomers;
        let kept = self.reserve::<C>(promised as usize, limit, now);
        self.promised = if kept { promised } else { self.promised };
        kept
    }
}

impl Cells for Shard {
    fn place(&mut self, key: Key, family: u64, now: Time) -> Place {
        let own = match self.sought {
            CounterKind::Bucket => self.promise::<Bucket>(now),
            CounterKind::Log => self.promise::<Log>(now),
            CounterKind::Fixed => self.promise::<Fixed>(now),
            CounterKind::Leases => self.promise::<Leases>(now),
        };
        if own {
            return Place::Own;
        }
        self.overflowing = true;
        self.rest.alarms.shared.add(now);
        Place::Shared(shared_key(key, family, self.rest.bits))
    }
}

/// Every pool there is; a kind that is missing here does not compile.
const _: fn() = || {
    fn is_whole<S: Cells + catraca_core::cell::Pool<Reference>>() {}
    is_whole::<Shard>();
};
