//! Records of a snapshot: kind, key, length and bytes of one cell.

use catraca_core::cell::{
    Block, Bucket, Cell, CellTable, FixedWindow, InFlight, RatioWatch, Reference, SettledMarker,
    SlidingWindow,
};
use catraca_core::codec::{CellKind, Codec, CodecError};
use catraca_core::digest::Key;
use catraca_core::time::Time;

use crate::memory::counter::CounterCell;
use crate::memory::overflow::is_overflow_key;
use crate::memory::shard::Shard;
use crate::memory::weighed_cell::WeighedCell;

/// What happened to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellAdmission {
    Restored,
    Expired,
    NoRoom,
}

/// Appends the records of all unexpired cells of a shard. Returns their number.
pub(super) fn encode(shard: &mut Shard, now: Time, into: &mut Vec<u8>) -> u64 {
    let mut records = CellWriter { into, count: 0 };
    shard.buckets.for_each_live(now, |key, cell| records.add(key, cell));
    shard.blocks.for_each_live(now, |key, cell| records.add(key, cell));
    shard.logs.for_each_live(now, |key, cell| records.add(key, cell));
    shard.fixed.for_each_live(now, |key, cell| records.add(key, cell));
    let cold = &mut *shard.cold;
    cold.leases.for_each_live(now, |key, cell| records.add(key, cell));
    cold.watches.for_each_live(now, |key, cell| records.add(key, cell));
    cold.marks.for_each_live(now, |key, cell| records.add(key, cell));
    cold.overflow.buckets.for_each_live(now, |key, cell| records.add(key, cell));
    cold.overflow.logs.for_each_live(now, |key, cell| records.add(key, cell));
    cold.overflow.fixed.for_each_live(now, |key, cell| records.add(key, cell));
    cold.overflow.leases.for_each_live(now, |key, cell| records.add(key, cell));
    // Oldest first: reading them in this order restores the order in which they are dropped.
    cold.references.for_each_live(now, |key, cell| records.add(key, cell));
    records.count
}

struct CellWriter<'a> {
    into: &'a mut Vec<u8>,
    count: u64,
}

impl CellWriter<'_> {
    fn add<C: Codec>(&mut self, key: Key, cell: &C) {
        self.into.push(C::KIND as u8);
        self.into.extend_from_slice(&key.to_bytes());
        // The length is known only after encoding: reserve four bytes and fill them in below.
        let length_at = self.into.len();
        self.into.extend_from_slice(&[0; 4]);
        cell.encode(self.into);
        let length = (self.into.len() - length_at - 4) as u32;
        self.into[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
        self.count += 1;
    }
}

/// Decodes a record and inserts it into its shard.
pub(super) fn admit(
    shard: &mut Shard,
    kind: CellKind,
    key: Key,
    bytes: &[u8],
    now: Time,
) -> Result<CellAdmission, CodecError> {
    match kind {
        CellKind::Bucket => admit_counter::<Bucket>(shard, key, bytes, now),
        CellKind::SlidingWindow => admit_counter::<SlidingWindow>(shard, key, bytes, now),
        CellKind::FixedWindow => admit_counter::<FixedWindow>(shard, key, bytes, now),
        CellKind::InFlight => admit_counter::<InFlight>(shard, key, bytes, now),
        CellKind::Block => admit_block(shard, key, bytes, now),
        CellKind::RatioWatch => admit_other::<RatioWatch>(shard, key, bytes, now),
        CellKind::SettledMarker => admit_other::<SettledMarker>(shard, key, bytes, now),
        CellKind::Reference => admit_other::<Reference>(shard, key, bytes, now),
    }
}

fn admit_counter<C: CounterCell + Codec>(
    shard: &mut Shard,
    key: Key,
    bytes: &[u8],
    now: Time,
) -> Result<CellAdmission, CodecError> {
    let cell = C::decode(bytes)?;
    if now >= cell.expires_at() {
        return Ok(CellAdmission::Expired);
    }
    // No reservations: a restored counter must fit into the budget.
    shard.begin_batch();
    // Overflow cells are found only while this flag is set.
    shard.overflowing |= is_overflow_key(key);
    Ok(restored_if(shard.put(key, cell, now)))
}

/// A restored block may use the part of the pool that is reserved for operators: it was active
/// before the restart.
fn admit_block(
    shard: &mut Shard,
    key: Key,
    bytes: &[u8],
    now: Time,
) -> Result<CellAdmission, CodecError> {
    let block = Block::decode(bytes)?;
    if now >= block.expires_at() {
        return Ok(CellAdmission::Expired);
    }
    if !shard.fits_operator(block.weight(), now) {
        return Ok(CellAdmission::NoRoom);
    }
    shard.blocks.insert(key, block);
    Ok(CellAdmission::Restored)
}

fn admit_other<C: Codec>(
    shard: &mut Shard,
    key: Key,
    bytes: &[u8],
    now: Time,
) -> Result<CellAdmission, CodecError>
where
    Shard: CellTable<C>,
{
    let cell = C::decode(bytes)?;
    if now >= cell.expires_at() {
        return Ok(CellAdmission::Expired);
    }
    Ok(restored_if(shard.put(key, cell, now)))
}

fn restored_if(has_room: bool) -> CellAdmission {
    if has_room { CellAdmission::Restored } else { CellAdmission::NoRoom }
}
