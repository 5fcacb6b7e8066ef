//! A shard in parts: one part of every pool for each namespace, and a common part for all.
//!
//! A new cell is stored in the part of its namespace, and when that part is full, in the common
//! part. So one namespace can fill the common part, but never the part of another one. The group in
//! a key identifies its namespace. A store with one namespace is not divided.

use std::sync::Arc;

use catraca_core::cell::{Block, Cell, CellTable, CounterSlot};
use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::options::{MemoryOptions, PoolShare};
use super::pressure::PressureCounters;
use super::shard::Shard;

/// All tables of the keys of one shard, behind one lock.
#[derive(Debug)]
pub(super) struct PartitionedShard {
    /// For all keys; the whole pool if the store is not divided.
    pub common: Shard,
    /// First the part of keys without a known group, then one part per group.
    reserved: Box<[Shard]>,
    /// Sorted.
    groups: Arc<[u16]>,
}

/// What a shard must offer for each kind of cell, beside its table.
pub(super) trait CellAdmission<C: Cell>: CellTable<C> {
    /// Writes a cell if there is room, and otherwise returns it. Drops no other cell and counts no
    /// refusal.
    fn try_put(&mut self, key: Key, cell: C, now: Time) -> Result<(), C>;

    /// Reserves room for a new counter. Kinds without overflow cells need no reservation.
    fn try_reserve(&mut self, _now: Time) -> bool {
        true
    }

    /// The overflow cell of a counter without room.
    fn overflow_slot(&mut self, _family: u64, _now: Time) -> CounterSlot {
        CounterSlot::Own
    }
}

impl PartitionedShard {
    pub fn new(
        options: &MemoryOptions,
        groups: &Arc<[u16]>,
        pressure: &Arc<PressureCounters>,
    ) -> Self {
        let parts = if groups.is_empty() { 0 } else { groups.len() + 1 };
        let bits = options.bits(parts);
        let shard = |share, index| {
            let limits = options.limits(share, bits);
            Shard::new(limits, index, Arc::clone(pressure))
        };
        let reserved = (0..parts).map(|index| shard(PoolShare::Reserved { parts }, index as u16));
        let common = if parts == 0 { PoolShare::Whole } else { PoolShare::Common };
        Self { common: shard(common, 0), reserved: reserved.collect(), groups: Arc::clone(groups) }
    }

    #[inline]
    pub fn is_divided(&self) -> bool {
        !self.reserved.is_empty()
    }

    #[inline]
    pub fn begin_batch(&mut self) {
        self.common.begin_batch();
        self.reserved.iter_mut().for_each(Shard::begin_batch);
    }

    pub fn parts(&self) -> impl Iterator<Item = &Shard> {
        std::iter::once(&self.common).chain(&self.reserved)
    }

    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Shard> {
        std::iter::once(&mut self.common).chain(&mut self.reserved)
    }

    /// Inserts a block that was active before a restart. It may use the part of the pool that is
    /// reserved for operators.
    pub fn restore_block(&mut self, key: Key, block: Block, now: Time) -> bool {
        let weight = block.weight();
        let has_room = self.own(key).fits_operator(weight, now);
        let shard = if has_room { self.own(key) } else { &mut self.common };
        // The table must have a free slot for every insertion, so the common part is asked too.
        if !has_room && !shard.fits_operator(weight, now) {
            return false;
        }
        shard.blocks.insert(key, block);
        true
    }

    /// The part of the key's namespace; the whole shard if it is not divided.
    fn own(&mut self, key: Key) -> &mut Shard {
        match self.own_index(key) {
            Some(index) => &mut self.reserved[index],
            None => &mut self.common,
        }
    }

    fn own_index(&self, key: Key) -> Option<usize> {
        if self.reserved.is_empty() {
            return None;
        }
        Some(self.groups.binary_search(&key.group()).map_or(0, |index| index + 1))
    }

    /// The part that has the cell; the common one if none has it.
    fn holder<C: Cell>(&mut self, key: Key, now: Time) -> &mut Shard
    where
        Shard: CellTable<C>,
    {
        match self.own_index(key) {
            Some(index) if has::<C>(&mut self.reserved[index], key, now) => {
                &mut self.reserved[index]
            }
            _ => &mut self.common,
        }
    }
}

fn has<C: Cell>(shard: &mut Shard, key: Key, now: Time) -> bool
where
    Shard: CellTable<C>,
{
    CellTable::<C>::get(shard, key, now).is_some()
}

impl<C: Cell> CellTable<C> for PartitionedShard
where
    Shard: CellAdmission<C>,
{
    fn get(&mut self, key: Key, now: Time) -> Option<&mut C> {
        self.holder::<C>(key, now).get(key, now)
    }

    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R> {
        self.holder::<C>(key, now).edit(key, now, change)
    }

    fn put(&mut self, key: Key, cell: C, now: Time) -> bool {
        let Some(index) = self.own_index(key) else { return self.common.put(key, cell, now) };
        let common = &mut self.common;
        let own = &mut self.reserved[index];
        if has::<C>(own, key, now) {
            return own.put(key, cell, now);
        }
        if has::<C>(common, key, now) {
            return common.put(key, cell, now);
        }
        // A counter is stored where its room was reserved.
        let is_reserved_in_common = own.reserved == 0 && common.reserved > 0;
        let stored = if is_reserved_in_common {
            common.try_put(key, cell, now).or_else(|cell| own.try_put(key, cell, now))
        } else {
            own.try_put(key, cell, now).or_else(|cell| common.try_put(key, cell, now))
        };
        // Both are full: the own part counts the refusal, or drops its oldest references.
        stored.map_or_else(|cell| own.put(key, cell, now), |()| true)
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        let index = self.own_index(key);
        let own = index.map(|index| &mut self.reserved[index]);
        let removed = own.is_some_and(|own| CellTable::<C>::remove(own, key, now));
        CellTable::<C>::remove(&mut self.common, key, now) || removed
    }

    fn counter_slot(&mut self, key: Key, family: u64, now: Time) -> CounterSlot {
        let Some(index) = self.own_index(key) else {
            return CellTable::<C>::counter_slot(&mut self.common, key, family, now);
        };
        let own = &mut self.reserved[index];
        let has_room = CellAdmission::<C>::try_reserve(own, now)
            || CellAdmission::<C>::try_reserve(&mut self.common, now);
        if has_room {
            return CounterSlot::Own;
        }
        CellAdmission::<C>::overflow_slot(own, family, now)
    }
}
