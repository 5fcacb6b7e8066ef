//! Counters: the cells that a check charges, at their own key or shared when memory is full.
//!
//! Must not lose a charge: a counter that was promised a place gets one, whatever it costs.

use catraca_core::cell::{Bucket, Fixed, Leases, Log, Pool, Watch};
use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::kept::Kept;
use super::overflow::is_shared;
use super::shard::Shard;
use super::table::Table;

/// The kinds of counters that newcomers may have to share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CounterKind {
    Bucket,
    Log,
    Fixed,
    Leases,
}

/// A cell that a check charges.
pub(super) trait Counter: Kept {
    const KIND: CounterKind;
    /// Whether it has all its bytes in its slot.
    const WEIGHTLESS: bool;

    /// Where each key has its own.
    fn table(shard: &mut Shard) -> &mut Table<Self>;
    /// Where newcomers share one.
    fn overflow(shard: &mut Shard) -> &mut Table<Self>;
}

impl<C: Counter> Pool<C> for Shard {
    #[inline]
    fn get(&mut self, key: Key, now: Time) -> Option<&mut C> {
        self.sought = C::KIND;
        self.home(key).get(key, now)
    }

    #[inline]
    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R> {
        self.home(key).edit(key, now, change)
    }

    #[inline]
    fn put(&mut self, key: Key, cell: C, now: Time) -> bool {
        match self.home(key).replace(key, cell) {
            Ok(()) => true,
            Err(cell) => self.add(key, cell, now),
        }
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        let removed: Option<C> = self.home(key).remove(key);
        removed.is_some_and(|cell| now < cell.forgotten_at())
    }
}

impl Shard {
    #[inline]
    fn home<C: Counter>(&mut self, key: Key) -> &mut Table<C> {
        if self.overflowing && is_shared(key) { C::overflow(self) } else { C::table(self) }
    }

    /// Adds a counter for a new key. One without a promise, such as a strike, needs free bytes.
    fn add<C: Counter>(&mut self, key: Key, cell: C, now: Time) -> bool {
        let shared = self.overflowing && is_shared(key);
        if !shared && !self.redeem() && !self.reserve::<C>(1, self.rest.limits.counters, now) {
            self.rest.alarms.refused_counters.add(now);
            return false;
        }
        let table = self.home(key);
        table.step(now, |_| ());
        table.insert(key, cell);
        true
    }

    fn redeem(&mut self) -> bool {
        let promised = self.promised > 0;
        self.promised = self.promised.saturating_sub(1);
        promised
    }
}

/// A watched ratio: counted like the others, but never shared.
impl Pool<Watch> for Shard {
    fn get(&mut self, key: Key, now: Time) -> Option<&mut Watch> {
        self.rest.watches.get(key, now)
    }

    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut Watch) -> R) -> Option<R> {
        self.rest.watches.edit(key, now, change)
    }

    fn put(&mut self, key: Key, cell: Watch, now: Time) -> bool {
        let Err(cell) = self.rest.watches.replace(key, cell) else { return true };
        let free = self.rest.limits.counters.saturating_sub(self.spent());
        let watches = &mut self.rest.watches;
        watches.step(now, |_| ());
        if free < cell.weight() || !watches.grow(1, free - cell.weight(), watches.slack()) {
            self.rest.alarms.refused_counters.add(now);
            return false;
        }
        watches.insert(key, cell);
        true
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        let removed = self.rest.watches.remove(key);
        removed.is_some_and(|cell| now < catraca_core::cell::Cell::forgotten_at(&cell))
    }
}

impl Counter for Bucket {
    const KIND: CounterKind = CounterKind::Bucket;
    const WEIGHTLESS: bool = true;

    #[inline]
    fn table(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.buckets
    }

    fn overflow(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.rest.overflow.buckets
    }
}

impl Counter for Log {
    const KIND: CounterKind = CounterKind::Log;
    const WEIGHTLESS: bool = false;

    #[inline]
    fn table(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.logs
    }

    fn overflow(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.rest.overflow.logs
    }
}

impl Counter for Fixed {
    const KIND: CounterKind = CounterKind::Fixed;
    const WEIGHTLESS: bool = true;

    #[inline]
    fn table(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.fixed
    }

    fn overflow(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.rest.overflow.fixed
    }
}

impl Counter for Leases {
    const KIND: CounterKind = CounterKind::Leases;
    const WEIGHTLESS: bool = false;

    #[inline]
    fn table(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.rest.leases
    }

    fn overflow(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.rest.overflow.leases
    }
}
