//! A table of cells of one kind, by key; forgotten cells count as absent and leave bit by bit.
//!
//! Keys are digests, so their second word is the hash: nothing is hashed here. Must not stall:
//! every call visits a bounded number of slots.

use catraca_core::digest::Key;
use catraca_core::time::Time;
use hashbrown::HashTable;

use super::kept::{Booked, Kept, Slot};

/// How many new cells come between two sweeps.
const SWEEP_EVERY: u32 = 8;
/// How many slots such a sweep visits: four for every new cell, side by side in memory.
const SWEEP_SLOTS: usize = 32;

/// Cells of one kind.
#[derive(Debug)]
pub(super) struct Table<C: Kept> {
    pub(super) slots: HashTable<Slot<C>>,
    /// Bytes that the cells have outside their slots.
    heap: usize,
    /// Where the next sweep goes on.
    cursor: u32,
    /// New cells since the last sweep.
    fresh: u32,
}

impl<C: Kept> Default for Table<C> {
    fn default() -> Self {
        Self { slots: HashTable::new(), heap: 0, cursor: 0, fresh: 0 }
    }
}

impl<C: Kept> Table<C> {
    /// The cell, unless it is forgotten.
    #[inline]
    pub fn get(&mut self, key: Key, now: Time) -> Option<&mut C> {
        self.live(key, now).map(|slot| &mut slot.cell)
    }

    /// Edits the cell and books its new weight.
    #[inline]
    pub fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R> {
        let slot = self.live(key, now)?;
        let before = slot.booked();
        let result = change(&mut slot.cell);
        let after = slot.cell.weight();
        slot.booked = C::Booked::of(after);
        self.rebook(before, after);
        Some(result)
    }

    /// Writes over the cell of a key, forgotten or not; gives the new one back if there is none.
    #[inline]
    pub fn replace(&mut self, key: Key, cell: C) -> Result<(), C> {
        let Some(slot) = self.slots.find_mut(hash(key), |slot| slot.key == key) else {
            return Err(cell);
        };
        let before = slot.booked();
        let after = cell.weight();
        slot.cell = cell;
        slot.booked = C::Booked::of(after);
        self.rebook(before, after);
        Ok(())
    }

    /// Adds the cell of a new key. Who cares about bytes makes room first.
    pub fn insert(&mut self, key: Key, cell: C) {
        let slot = Slot::new(key, cell);
        self.rebook(0, slot.booked());
        self.slots.insert_unique(hash(key), slot, |slot| hash(slot.key));
    }

    /// Takes the cell of a key out, forgotten or not.
    pub fn remove(&mut self, key: Key) -> Option<C> {
        let found = self.slots.find_entry(hash(key), |slot| slot.key == key).ok()?;
        let (slot, _) = found.remove();
        self.rebook(slot.booked(), 0);
        Some(slot.cell)
    }

    /// Sweeps a little if it is time to: called once for every new cell.
    #[inline]
    pub fn step(&mut self, now: Time, gone: impl FnMut(&C)) {
        self.fresh += 1;
        if self.fresh >= SWEEP_EVERY {
            self.fresh = 0;
            self.sweep(SWEEP_SLOTS, now, gone);
        }
    }

    /// Visits some slots, goes on where the last sweep ended, and drops the forgotten.
    pub fn sweep(&mut self, visits: usize, now: Time, mut gone: impl FnMut(&C)) {
        let slots = self.slots.num_buckets();
        let before = self.slots.len();
        for _ in 0..visits.min(slots) {
            // A power of two.
            let place = self.cursor as usize & (slots - 1);
            self.cursor = (place + 1) as u32;
            self.drop_forgotten(place, now, &mut gone);
        }
        if self.slots.len() < before {
            self.shrink();
        }
    }

    fn drop_forgotten(&mut self, place: usize, now: Time, gone: &mut impl FnMut(&C)) {
        let slot = self.slots.get_bucket(place);
        if slot.is_none_or(|slot| now < slot.cell.forgotten_at()) {
            return;
        }
        if let Ok(found) = self.slots.get_bucket_entry(place) {
            let (slot, _) = found.remove();
            self.rebook(slot.booked(), 0);
            gone(&slot.cell);
        }
    }

    /// Calls `visit` with every cell that is not forgotten.
    pub fn each(&self, now: Time, mut visit: impl FnMut(Key, &C)) {
        let live = self.slots.iter().filter(|slot| now < slot.cell.forgotten_at());
        live.for_each(|slot| visit(slot.key, &slot.cell));
    }

    /// How many cells are here, the forgotten that have not left yet included.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of the slots and of what the cells have outside.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.slots.allocation_size() + self.heap
    }

    /// A cell that weighed `before` weighs `after` now.
    #[inline]
    fn rebook(&mut self, before: usize, after: usize) {
        debug_assert!(self.heap >= before, "what leaves the books was in them");
        self.heap = (self.heap + after).saturating_sub(before);
    }

    #[inline]
    fn live(&mut self, key: Key, now: Time) -> Option<&mut Slot<C>> {
        let slot = self.slots.find_mut(hash(key), |slot| slot.key == key)?;
        (now < slot.cell.forgotten_at()).then_some(slot)
    }
}

/// The shard took the first word's bits; the second has as many of its own.
#[inline]
pub(super) fn hash(key: Key) -> u64 {
    key.words()[1]
}
