//! References, oldest first: when their bytes are used up, the oldest makes room for the newest.
//!
//! Must not drop a younger one before an older one, nor forget to count.

use std::collections::BTreeMap;

use catraca_core::cell::{Cell, Reference};
use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::kept::{Kept, allocated};
use super::shard::RECLAIM_SLOTS;
use super::table::Table;

/// What one entry of the order takes, with its share of a node.
const ORDER_BYTES: usize = 48;

/// The references of a shard.
#[derive(Debug, Default)]
pub(super) struct References {
    table: Table<Aged>,
    /// By the turn in which each came.
    order: BTreeMap<u64, Key>,
    next: u64,
}

/// A reference and when it came.
#[derive(Debug)]
struct Aged {
    reference: Reference,
    turn: u64,
}

impl Cell for Aged {
    fn forgotten_at(&self) -> Time {
        self.reference.forgotten_at()
    }

    fn heap_bytes(&self) -> usize {
        self.reference.heap_bytes()
    }
}

impl Kept for Aged {
    type Booked = ();

    /// The ticket, the instants, the list of events and each of them are allocations of their own.
    fn weight(&self) -> usize {
        let events = self.reference.credited.len();
        self.heap_bytes() + (2 + usize::from(events > 0) + events) * allocated(1)
    }
}

impl References {
    pub fn get(&mut self, key: Key, now: Time) -> Option<&mut Reference> {
        self.table.get(key, now).map(|aged| &mut aged.reference)
    }

    pub fn edit<R>(
        &mut self,
        key: Key,
        now: Time,
        change: impl FnOnce(&mut Reference) -> R,
    ) -> Option<R> {
        self.table.edit(key, now, |aged| change(&mut aged.reference))
    }

    /// Writes a reference as the youngest; `false` if it alone is too large.
    pub fn put(
        &mut self,
        key: Key,
        reference: Reference,
        limit: usize,
        now: Time,
        dropped: impl Fn(),
    ) -> bool {
        self.remove(key);
        self.step(now);
        let aged = Aged { reference, turn: self.next };
        while !self.fits(aged.weight() + ORDER_BYTES, limit, now) {
            if !self.drop_oldest() {
                return false;
            }
            dropped();
        }
        self.order.insert(self.next, key);
        self.table.insert(key, aged);
        self.next += 1;
        true
    }

    pub fn remove(&mut self, key: Key) -> Option<Reference> {
        let aged = self.table.remove(key)?;
        self.order.remove(&aged.turn);
        Some(aged.reference)
    }

    pub fn sweep(&mut self, visits: usize, now: Time) {
        self.table.sweep(visits, now, |aged| {
            self.order.remove(&aged.turn);
        });
    }

    /// Calls `visit` with every reference that is not forgotten, oldest first.
    pub fn each(&mut self, now: Time, mut visit: impl FnMut(Key, &Reference)) {
        for key in self.order.values() {
            if let Some(aged) = self.table.get(*key, now) {
                visit(*key, &aged.reference);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn bytes(&self) -> usize {
        self.table.bytes() + self.order.len() * ORDER_BYTES
    }

    fn step(&mut self, now: Time) {
        self.table.step(now, |aged| {
            self.order.remove(&aged.turn);
        });
    }

    fn fits(&mut self, weight: usize, limit: usize, now: Time) -> bool {
        if self.table.spare() == 0 || self.bytes() + weight > limit {
            self.sweep(RECLAIM_SLOTS, now);
        }
        let bytes = self.bytes() + weight;
        bytes <= limit && self.table.grow(1, limit - bytes, self.table.slack())
    }

    fn drop_oldest(&mut self) -> bool {
        let Some((_, key)) = self.order.pop_first() else { return false };
        self.table.remove(key);
        true
    }
}
