//! The pools of what was done: blocks, settled-markers, references; each with bytes of its own.
//!
//! Must not let counters, however many, take a byte of theirs.

use catraca_core::cell::block::Origin;
use catraca_core::cell::{Block, Cell, Mark, Pool, Reference};
use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::kept::{Kept, MARK_WEIGHT};
use super::options::Share;
use super::shard::{RECLAIM_SLOTS, Shard};

impl Pool<Block> for Shard {
    #[inline]
    fn get(&mut self, key: Key, now: Time) -> Option<&mut Block> {
        // Asked twice for every row, and mostly there is no block in the whole shard.
        if self.blocks.len() == 0 { None } else { self.blocks.get(key, now) }
    }

    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut Block) -> R) -> Option<R> {
        self.blocks.edit(key, now, change)
    }

    fn put(&mut self, key: Key, cell: Block, now: Time) -> bool {
        match self.blocks.replace(key, cell) {
            Ok(()) => true,
            Err(cell) => self.add_block(key, cell, now),
        }
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        self.blocks.remove(key).is_some_and(|cell| now < cell.forgotten_at())
    }
}

impl Shard {
    fn add_block(&mut self, key: Key, cell: Block, now: Time) -> bool {
        let fits = match cell.origin {
            Origin::Operator => self.fits_operator(cell.weight(), now),
            _ => self.fits_block(cell.weight(), self.rest.limits.automatic, now),
        };
        if !fits {
            self.rest.alarms.refused_blocks.add(now);
            return false;
        }
        self.blocks.step(now, |_| ());
        self.blocks.insert(key, cell);
        true
    }

    /// A person's word is worth a look at every slot and a table built anew.
    pub(super) fn fits_operator(&mut self, weight: usize, now: Time) -> bool {
        let share = self.rest.limits.operator;
        if self.fits_block(weight, share, now) {
            return true;
        }
        self.blocks.sweep(usize::MAX, now, |_| ());
        let free = share.bytes.saturating_sub(self.blocks.bytes() + weight);
        self.has_share(weight, share) && self.blocks.grow(1, free, 1)
    }

    fn fits_block(&mut self, weight: usize, share: Share, now: Time) -> bool {
        if self.blocks.spare() == 0 || !self.has_share(weight, share) {
            self.blocks.sweep(RECLAIM_SLOTS, now, |_| ());
        }
        let free = share.bytes.saturating_sub(self.blocks.bytes() + weight);
        self.has_share(weight, share) && self.blocks.grow(1, free, self.blocks.slack())
    }

    fn has_share(&self, weight: usize, share: Share) -> bool {
        self.blocks.len() < share.cells && self.blocks.bytes() + weight <= share.bytes
    }
}

impl Pool<Mark> for Shard {
    fn get(&mut self, key: Key, now: Time) -> Option<&mut Mark> {
        self.rest.marks.get(key, now)
    }

    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut Mark) -> R) -> Option<R> {
        self.rest.marks.edit(key, now, change)
    }

    fn put(&mut self, key: Key, cell: Mark, now: Time) -> bool {
        let Err(cell) = self.rest.marks.replace(key, cell) else { return true };
        if !self.fits_mark(cell.weight().max(MARK_WEIGHT), now) {
            self.rest.alarms.refused_marks.add(now);
            return false;
        }
        self.rest.marks.step(now, |_| ());
        self.rest.marks.insert(key, cell);
        true
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        self.rest.marks.remove(key).is_some_and(|cell| now < cell.forgotten_at())
    }
}

impl Shard {
    fn fits_mark(&mut self, weight: usize, now: Time) -> bool {
        let limit = self.rest.limits.marks;
        let marks = &mut self.rest.marks;
        if marks.spare() == 0 || marks.bytes() + weight > limit {
            marks.sweep(RECLAIM_SLOTS, now, |_| ());
        }
        let bytes = marks.bytes() + weight;
        bytes <= limit && marks.grow(1, limit - bytes, marks.slack())
    }
}

impl Pool<Reference> for Shard {
    fn get(&mut self, key: Key, now: Time) -> Option<&mut Reference> {
        self.rest.references.get(key, now)
    }

    fn edit<R>(
        &mut self,
        key: Key,
        now: Time,
        change: impl FnOnce(&mut Reference) -> R,
    ) -> Option<R> {
        self.rest.references.edit(key, now, change)
    }

    fn put(&mut self, key: Key, cell: Reference, now: Time) -> bool {
        let rest = &mut *self.rest;
        let dropped = || rest.alarms.dropped_references.add(now);
        rest.references.put(key, cell, rest.limits.references, now, dropped)
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        self.rest.references.remove(key).is_some_and(|cell| now < cell.forgotten_at())
    }
}
