//! The pools of blocks, settled-markers and references, each with its own byte limit.
//!
//! Counters never use the bytes of these pools: a flood of new keys must not prevent a block or a
//! settle.

use catraca_core::batch::RowSettlement;
use catraca_core::cell::block::Origin;
use catraca_core::cell::{Block, Cell, CellTable, Reference, SettledMarker, allocation_bytes};
use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::options::BlockQuota;
use super::partitioned_shard::CellAdmission;
use super::shard::{RECLAIM_SLOTS, Shard};

/// The expected weight of a marker with two rows: it is inserted empty and filled right after.
const MARK_WEIGHT: usize = allocation_bytes(2 * size_of::<RowSettlement>());

impl CellTable<Block> for Shard {
    #[inline]
    fn get(&mut self, key: Key, now: Time) -> Option<&mut Block> {
        // A fast path: this is called twice per row, and most shards have no block.
        if self.blocks.len() == 0 { None } else { self.blocks.get(key, now) }
    }

    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut Block) -> R) -> Option<R> {
        self.blocks.edit(key, now, change)
    }

    fn put(&mut self, key: Key, cell: Block, now: Time) -> bool {
        let stored = self.try_put(key, cell, now).is_ok();
        if !stored {
            self.cold.pressure.refused_blocks.add(now);
        }
        stored
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        self.blocks.remove(key).is_some_and(|cell| now < cell.expires_at())
    }
}

impl CellAdmission<Block> for Shard {
    fn try_put(&mut self, key: Key, cell: Block, now: Time) -> Result<(), Block> {
        let Err(cell) = self.blocks.replace(key, cell) else { return Ok(()) };
        let fits = match cell.origin {
            Origin::Operator => self.fits_operator(cell.weight(), now),
            _ => self.fits_block(cell.weight(), self.cold.limits.automatic, now),
        };
        if !fits {
            return Err(cell);
        }
        self.blocks.sweep_if_due(now, |_| ());
        self.blocks.insert(key, cell);
        Ok(())
    }
}

impl Shard {
    /// Whether an operator's block fits. Unlike an automatic block it may scan all slots for
    /// expired ones and rebuild the table.
    pub(super) fn fits_operator(&mut self, weight: usize, now: Time) -> bool {
        let quota = self.cold.limits.operator;
        if self.fits_block(weight, quota, now) {
            return true;
        }
        self.blocks.sweep(usize::MAX, now);
        let free = quota.bytes.saturating_sub(self.blocks.bytes() + weight);
        self.is_within_quota(weight, quota) && self.blocks.make_room(1, free, 1)
    }

    fn fits_block(&mut self, weight: usize, quota: BlockQuota, now: Time) -> bool {
        // Searches for expired blocks only when there is no room otherwise.
        if self.blocks.free_slots() == 0 || !self.is_within_quota(weight, quota) {
            self.blocks.sweep(RECLAIM_SLOTS, now);
        }
        let free = quota.bytes.saturating_sub(self.blocks.bytes() + weight);
        self.is_within_quota(weight, quota)
            && self.blocks.make_room(1, free, self.blocks.rebuild_threshold())
    }

    fn is_within_quota(&self, weight: usize, quota: BlockQuota) -> bool {
        self.blocks.len() < quota.cells && self.blocks.bytes() + weight <= quota.bytes
    }
}

impl CellTable<SettledMarker> for Shard {
    fn get(&mut self, key: Key, now: Time) -> Option<&mut SettledMarker> {
        self.cold.marks.get(key, now)
    }

    fn edit<R>(
        &mut self,
        key: Key,
        now: Time,
        change: impl FnOnce(&mut SettledMarker) -> R,
    ) -> Option<R> {
        self.cold.marks.edit(key, now, change)
    }

    fn put(&mut self, key: Key, cell: SettledMarker, now: Time) -> bool {
        let stored = self.try_put(key, cell, now).is_ok();
        if !stored {
            self.cold.pressure.refused_marks.add(now);
        }
        stored
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        self.cold.marks.remove(key).is_some_and(|cell| now < cell.expires_at())
    }
}

impl CellAdmission<SettledMarker> for Shard {
    fn try_put(&mut self, key: Key, cell: SettledMarker, now: Time) -> Result<(), SettledMarker> {
        let Err(cell) = self.cold.marks.replace(key, cell) else { return Ok(()) };
        // The marker is inserted empty and filled right after, without another check of the limit.
        if !self.fits_mark(cell.weight().max(MARK_WEIGHT), now) {
            return Err(cell);
        }
        self.cold.marks.sweep_if_due(now, |_| ());
        self.cold.marks.insert(key, cell);
        Ok(())
    }
}

impl Shard {
    fn fits_mark(&mut self, weight: usize, now: Time) -> bool {
        let limit = self.cold.limits.marks;
        let marks = &mut self.cold.marks;
        if marks.free_slots() == 0 || marks.bytes() + weight > limit {
            marks.sweep(RECLAIM_SLOTS, now);
        }
        let bytes = marks.bytes() + weight;
        bytes <= limit && marks.make_room(1, limit - bytes, marks.rebuild_threshold())
    }
}

impl CellTable<Reference> for Shard {
    fn get(&mut self, key: Key, now: Time) -> Option<&mut Reference> {
        self.cold.references.get(key, now)
    }

    fn edit<R>(
        &mut self,
        key: Key,
        now: Time,
        change: impl FnOnce(&mut Reference) -> R,
    ) -> Option<R> {
        self.cold.references.edit(key, now, change)
    }

    fn put(&mut self, key: Key, cell: Reference, now: Time) -> bool {
        let cold = &mut *self.cold;
        let on_dropped = || cold.pressure.dropped_references.add(now);
        cold.references.put(key, cell, cold.limits.references, now, on_dropped)
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        self.cold.references.remove(key).is_some_and(|cell| now < cell.expires_at())
    }
}

impl CellAdmission<Reference> for Shard {
    fn try_put(&mut self, key: Key, cell: Reference, now: Time) -> Result<(), Reference> {
        let cold = &mut *self.cold;
        cold.references.try_put(key, cell, cold.limits.references, now)
    }
}
