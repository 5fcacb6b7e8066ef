//! A hash table of cells of one kind. Expired cells count as absent and are removed a few at a
//! time.
//!
//! A key is a digest, so its second word is the hash and nothing is hashed here. Every call visits
//! a bounded number of slots, so that no request waits for a full sweep.

use catraca_core::cell::{Bucket, Cell};
use catraca_core::digest::Key;
use catraca_core::time::Time;
use hashbrown::HashTable;

/// Insertions between two sweeps.
const SWEEP_EVERY: u32 = 8;
/// Slots that such a sweep visits: four per insertion, adjacent in memory.
const SWEEP_SLOTS: usize = 32;

/// An occupied slot of a table.
#[derive(Debug)]
pub(super) struct Slot<C> {
    pub key: Key,
    pub cell: C,
}

// Stores hold millions of buckets.
const _: () = assert!(size_of::<Slot<Bucket>>() == 48);

/// Cells of one kind. Their heap bytes change only through the methods of the table, which account
/// for them.
#[derive(Debug)]
pub(super) struct Table<C: Cell> {
    pub(super) slots: HashTable<Slot<C>>,
    /// Total heap bytes of the cells.
    heap: usize,
    /// The index of the slot at which the next sweep continues.
    cursor: u32,
    /// Insertions since the last sweep.
    inserted: u32,
}

impl<C: Cell> Default for Table<C> {
    fn default() -> Self {
        Self { slots: HashTable::new(), heap: 0, cursor: 0, inserted: 0 }
    }
}

impl<C: Cell> Table<C> {
    /// The cell, unless it has expired.
    #[inline]
    pub fn get(&mut self, key: Key, now: Time) -> Option<&mut C> {
        self.find_live(key, now).map(|slot| &mut slot.cell)
    }

    /// Edits the cell and accounts for its new weight.
    #[inline]
    pub fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R> {
        let slot = self.find_live(key, now)?;
        let before = slot.cell.weight();
        let result = change(&mut slot.cell);
        let after = slot.cell.weight();
        self.account(before, after);
        Some(result)
    }

    /// Overwrites the cell of a key, expired or not. Returns the new cell if the key is absent.
    #[inline]
    pub fn replace(&mut self, key: Key, cell: C) -> Result<(), C> {
        let Some(slot) = self.slots.find_mut(hash(key), |slot| slot.key == key) else {
            return Err(cell);
        };
        let before = slot.cell.weight();
        let after = cell.weight();
        slot.cell = cell;
        self.account(before, after);
        Ok(())
    }

    /// Inserts the cell of a new key. Does not check any limit: the caller makes room first.
    pub fn insert(&mut self, key: Key, cell: C) {
        self.account(0, cell.weight());
        self.slots.insert_unique(hash(key), Slot { key, cell }, |slot| hash(slot.key));
    }

    /// Removes the cell of a key, expired or not.
    pub fn remove(&mut self, key: Key) -> Option<C> {
        let found = self.slots.find_entry(hash(key), |slot| slot.key == key).ok()?;
        let (slot, _) = found.remove();
        self.account(slot.cell.weight(), 0);
        Some(slot.cell)
    }

    /// Called once per insertion; every eighth call sweeps some slots.
    #[inline]
    pub fn sweep_if_due(&mut self, now: Time, on_removed: impl FnMut(&C)) {
        self.inserted += 1;
        if self.inserted >= SWEEP_EVERY {
            self.inserted = 0;
            self.sweep_with(SWEEP_SLOTS, now, on_removed);
        }
    }

    /// Visits the next `visits` slots, wrapping around, and removes expired cells.
    pub fn sweep(&mut self, visits: usize, now: Time) {
        self.sweep_with(visits, now, |_| ());
    }

    /// Like [`Self::sweep`]; calls `on_removed` with each removed cell.
    pub fn sweep_with(&mut self, visits: usize, now: Time, mut on_removed: impl FnMut(&C)) {
        let slot_count = self.slots.num_buckets();
        let before = self.slots.len();
        // Visits no slot twice, even if `visits` is larger than the table.
        for _ in 0..visits.min(slot_count) {
            // The number of slots is a power of two. The cursor may be beyond the end, if the table
            // has shrunk since the last sweep.
            let index = self.cursor as usize & (slot_count - 1);
            // Beyond 2^32 slots the cursor would only start over.
            self.cursor = (index + 1) as u32;
            self.remove_if_expired(index, now, &mut on_removed);
        }
        if self.slots.len() < before {
            self.shrink();
        }
    }

    fn remove_if_expired(&mut self, index: usize, now: Time, on_removed: &mut impl FnMut(&C)) {
        let slot = self.slots.get_bucket(index);
        // An empty slot, or a cell that is still live.
        if slot.is_none_or(|slot| now < slot.cell.expires_at()) {
            return;
        }
        if let Ok(found) = self.slots.get_bucket_entry(index) {
            let (slot, _) = found.remove();
            self.account(slot.cell.weight(), 0);
            on_removed(&slot.cell);
        }
    }

    /// Calls `visit` with every unexpired cell.
    pub fn for_each_live(&self, now: Time, mut visit: impl FnMut(Key, &C)) {
        let live = self.slots.iter().filter(|slot| now < slot.cell.expires_at());
        live.for_each(|slot| visit(slot.key, &slot.cell));
    }

    /// The number of cells, including expired ones that were not removed yet.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of the slots and of the cells' heap allocations.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.slots.allocation_size() + self.heap
    }

    /// Replaces the weight `before` of a cell by `after` in the total.
    #[inline]
    fn account(&mut self, before: usize, after: usize) {
        debug_assert!(self.heap >= before, "removed more than was accounted");
        // Saturating: in a release build a wrong total must not wrap to a huge one.
        self.heap = (self.heap + after).saturating_sub(before);
    }

    #[inline]
    fn find_live(&mut self, key: Key, now: Time) -> Option<&mut Slot<C>> {
        let slot = self.slots.find_mut(hash(key), |slot| slot.key == key)?;
        (now < slot.cell.expires_at()).then_some(slot)
    }
}

/// The shard uses bits of the first word, so the second is independent of it. All keys of a shard
/// share the leading bits of the first.
#[inline]
pub(super) fn hash(key: Key) -> u64 {
    key.words()[1]
}
