//! References, with the order in which they were written: when the pool is full, the oldest are
//! dropped.

use std::collections::BTreeMap;

use catraca_core::cell::{Cell, Reference, allocation_bytes};
use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::shard::RECLAIM_SLOTS;
use super::table::Table;

/// The estimated bytes of an entry of `order`, including its share of a tree node.
const ORDER_BYTES: usize = 48;

/// The references of one shard.
#[derive(Debug, Default)]
pub(super) struct References {
    table: Table<AgedReference>,
    /// Keys by sequence number, so the first is the oldest.
    order: BTreeMap<u64, Key>,
    next_sequence: u64,
}

/// A reference and its sequence number.
#[derive(Debug)]
struct AgedReference {
    reference: Reference,
    sequence: u64,
}

impl Cell for AgedReference {
    const IS_INLINE: bool = Reference::IS_INLINE;

    fn expires_at(&self) -> Time {
        self.reference.expires_at()
    }

    fn heap_bytes(&self) -> usize {
        self.reference.heap_bytes()
    }

    /// The ticket and the instants are two allocations, the list of credited events is a third, and
    /// each event is one more.
    fn weight(&self) -> usize {
        let events = self.reference.credited.len();
        self.heap_bytes() + (2 + usize::from(events > 0) + events) * allocation_bytes(1)
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

    /// Inserts a reference as the newest. Returns `false` if it alone exceeds the limit.
    pub fn put(
        &mut self,
        key: Key,
        reference: Reference,
        limit: usize,
        now: Time,
        on_dropped: impl Fn(),
    ) -> bool {
        let mut refused = self.try_put(key, reference, limit, now);
        // Ends at the latest when the pool is empty: then the reference alone is too large.
        while let Err(reference) = refused {
            if !self.drop_oldest() {
                return false;
            }
            on_dropped();
            refused = self.try_put(key, reference, limit, now);
        }
        true
    }

    /// Inserts a reference as the newest, unless older ones would have to be dropped for it.
    pub fn try_put(
        &mut self,
        key: Key,
        reference: Reference,
        limit: usize,
        now: Time,
    ) -> Result<(), Reference> {
        // An existing reference is replaced and becomes the newest. It has expired, since a check
        // stores no reference over a live one.
        self.remove(key);
        self.sweep_if_due(now);
        let aged = AgedReference { reference, sequence: self.next_sequence };
        if !self.fits(aged.weight() + ORDER_BYTES, limit, now) {
            return Err(aged.reference);
        }
        self.order.insert(self.next_sequence, key);
        self.table.insert(key, aged);
        self.next_sequence += 1;
        Ok(())
    }

    pub fn remove(&mut self, key: Key) -> Option<Reference> {
        let aged = self.table.remove(key)?;
        self.order.remove(&aged.sequence);
        Some(aged.reference)
    }

    pub fn sweep(&mut self, visits: usize, now: Time) {
        self.table.sweep_with(visits, now, |aged| {
            self.order.remove(&aged.sequence);
        });
    }

    /// Calls `visit` with every unexpired reference, oldest first.
    pub fn for_each_live(&mut self, now: Time, mut visit: impl FnMut(Key, &Reference)) {
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

    fn sweep_if_due(&mut self, now: Time) {
        self.table.sweep_if_due(now, |aged| {
            self.order.remove(&aged.sequence);
        });
    }

    fn fits(&mut self, weight: usize, limit: usize, now: Time) -> bool {
        if self.table.free_slots() == 0 || self.bytes() + weight > limit {
            self.sweep(RECLAIM_SLOTS, now);
        }
        let bytes = self.bytes() + weight;
        bytes <= limit && self.table.make_room(1, limit - bytes, self.table.rebuild_threshold())
    }

    fn drop_oldest(&mut self) -> bool {
        let Some((_, key)) = self.order.pop_first() else { return false };
        self.table.remove(key);
        true
    }
}
