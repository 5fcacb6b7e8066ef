//! Growth of a table: in powers of two, only within the bytes that it may use.
//!
//! hashbrown leaves a tombstone for a removed entry, and a tombstone counts as used until the table
//! is rehashed. So a table with many removals may look full although it is not; such a table is
//! rebuilt at its size and must not grow.

use catraca_core::cell::Cell;
use hashbrown::HashTable;

use super::table::{Slot, Table, hash};

/// A table with so few slots is not shrunk.
const SHRINK_SLOTS_MIN: usize = 32;

impl<C: Cell> Table<C> {
    /// How many cells fit without growing or rebuilding.
    #[inline]
    pub fn free_slots(&self) -> usize {
        self.slots.capacity() - self.slots.len()
    }

    /// How many cells fit into the present slots after a rebuild, when no tombstones are left.
    pub fn full_capacity(&self) -> usize {
        capacity(self.slots.num_buckets())
    }

    /// Makes room for `more` cells with at most `bytes` of growth. Returns whether there is room.
    ///
    /// A table is rebuilt at its size only if that frees at least `rebuild_threshold` slots: so
    /// many insertions then pay for the rebuild.
    pub fn make_room(&mut self, more: usize, bytes: usize, rebuild_threshold: usize) -> bool {
        if self.free_slots() >= more {
            return true;
        }
        let cells = self.slots.len() + more;
        // At most half full: `reserve` rehashes in place, which needs no bytes.
        if cells <= self.full_capacity() / 2 || self.growth_bytes(cells) <= bytes {
            self.slots.reserve(more, |slot| hash(slot.key));
            return true;
        }
        // There are no bytes for growth. A rebuild at the same size only removes tombstones.
        let freed = self.full_capacity() - self.slots.len();
        if freed < rebuild_threshold.max(more) {
            return false;
        }
        self.rebuild();
        true
    }

    /// The least number of slots that a rebuild must free.
    pub fn rebuild_threshold(&self) -> usize {
        self.full_capacity() / 16 + 1
    }

    /// Frees slots when at most an eighth of them is used, and all of them when the table is empty.
    pub(super) fn shrink(&mut self) {
        let is_sparse = self.slots.len() * 8 <= self.full_capacity();
        if self.slots.is_empty() || (is_sparse && self.slots.num_buckets() > SHRINK_SLOTS_MIN) {
            // Twice the cells, so that the next insertions do not grow the table again.
            self.slots.shrink_to(self.slots.len() * 2, |slot| hash(slot.key));
        }
    }

    /// The additional bytes of the next size that holds `cells` cells.
    fn growth_bytes(&self, cells: usize) -> usize {
        // The smallest hashbrown table has four slots.
        let mut slot_count = self.slots.num_buckets().max(2) * 2;
        while capacity(slot_count) < cells {
            slot_count *= 2;
        }
        table_bytes::<C>(slot_count).saturating_sub(self.slots.allocation_size())
    }

    fn rebuild(&mut self) {
        let mut rebuilt = HashTable::with_capacity(self.full_capacity());
        for slot in self.slots.drain() {
            rebuilt.insert_unique(hash(slot.key), slot, |slot: &Slot<C>| hash(slot.key));
        }
        self.slots = rebuilt;
    }
}

/// How many cells fit into a table of at most `bytes`.
pub(super) fn max_cells<C: Cell>(bytes: usize) -> usize {
    let mut slot_count = 2;
    while table_bytes::<C>(slot_count * 2) <= bytes {
        slot_count *= 2;
    }
    // The smallest hashbrown table has four slots.
    if slot_count < 4 { 0 } else { capacity(slot_count) }
}

/// The allocation of a hashbrown table: slots, one control byte per slot, and 16 trailing control
/// bytes (one SIMD group).
fn table_bytes<C: Cell>(slot_count: usize) -> usize {
    slot_count * (size_of::<Slot<C>>() + 1) + 16
}

/// The load limit of hashbrown: seven eighths of the slots, and one free slot in small tables.
fn capacity(slot_count: usize) -> usize {
    // Never zero: hashbrown reports one slot for a table without an allocation.
    if slot_count <= 8 { slot_count - 1 } else { slot_count / 8 * 7 }
}
