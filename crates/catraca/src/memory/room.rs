//! How a table grows and shrinks: by powers of two, only within the bytes it is given.
//!
//! Removed cells leave marks that count as full until a table is built anew, so that a busy table
//! may look full while it is not. Must not grow a table that only needs to be built anew.

use hashbrown::HashTable;

use super::kept::{Kept, Slot};
use super::table::{Table, hash};

/// A table this small is not worth shrinking.
const SMALL: usize = 32;

impl<C: Kept> Table<C> {
    /// How many new cells fit without any growth.
    #[inline]
    pub fn spare(&self) -> usize {
        self.slots.capacity() - self.slots.len()
    }

    /// How many cells fit into the slots there are, once the table is built anew.
    pub fn full_capacity(&self) -> usize {
        capacity(self.slots.num_buckets())
    }

    /// Makes room for `more` new cells with at most `bytes` of growth; says whether there is.
    ///
    /// A table is built anew at its size only if at least `slack` places come free by that, so that
    /// the work is paid for by as many new cells.
    pub fn grow(&mut self, more: usize, bytes: usize, slack: usize) -> bool {
        if self.spare() >= more {
            return true;
        }
        let wanted = self.slots.len() + more;
        // Half empty: the table itself then cleans up in place instead of growing.
        if wanted <= self.full_capacity() / 2 || self.growth(wanted) <= bytes {
            self.slots.reserve(more, |slot| hash(slot.key));
            return true;
        }
        let freed = self.full_capacity() - self.slots.len();
        if freed < slack.max(more) {
            return false;
        }
        self.rebuild();
        true
    }

    /// Places that a rebuild must free to be worth it.
    pub fn slack(&self) -> usize {
        self.full_capacity() / 16 + 1
    }

    /// Gives slots back when an eighth of them would do, and all of them when there is no cell.
    pub(super) fn shrink(&mut self) {
        let few = self.slots.len() * 8 <= self.full_capacity();
        if self.slots.is_empty() || (few && self.slots.num_buckets() > SMALL) {
            self.slots.shrink_to(self.slots.len() * 2, |slot| hash(slot.key));
        }
    }

    /// Bytes that the next size has more than this one.
    fn growth(&self, wanted: usize) -> usize {
        let mut buckets = self.slots.num_buckets().max(2) * 2;
        while capacity(buckets) < wanted {
            buckets *= 2;
        }
        table_bytes::<C>(buckets).saturating_sub(self.slots.allocation_size())
    }

    fn rebuild(&mut self) {
        let mut fresh = HashTable::with_capacity(self.full_capacity());
        for slot in self.slots.drain() {
            fresh.insert_unique(hash(slot.key), slot, |slot: &Slot<C>| hash(slot.key));
        }
        self.slots = fresh;
    }
}

/// How many cells fit at most into a table of so many bytes.
pub(super) fn most_cells<C: Kept>(bytes: usize) -> usize {
    let mut buckets = 2;
    while table_bytes::<C>(buckets * 2) <= bytes {
        buckets *= 2;
    }
    if buckets < 4 { 0 } else { capacity(buckets) }
}

/// A slot, one byte of control for each, and a group of those at the end.
fn table_bytes<C: Kept>(buckets: usize) -> usize {
    buckets * (size_of::<Slot<C>>() + 1) + 16
}

/// An eighth of the slots, and at least one, stays empty.
fn capacity(buckets: usize) -> usize {
    if buckets <= 8 { buckets - 1 } else { buckets / 8 * 7 }
}
