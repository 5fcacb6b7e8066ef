//! One cell in a snapshot: its kind, its key, the length of its bytes, and these.
//!
//! Must not know files.

use catraca_core::cell::{Block, Bucket, Cell, Fixed, Leases, Log, Mark, Pool, Reference, Watch};
use catraca_core::codec::{Codec, CodecError, Kind};
use catraca_core::digest::Key;
use catraca_core::time::Time;

use crate::memory::counter::Counter;
use crate::memory::kept::Kept;
use crate::memory::overflow::is_shared;
use crate::memory::shard::Shard;

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    Kept,
    Forgotten,
    NoRoom,
}

/// Appends the records of a shard; says how many.
pub(super) fn encode(shard: &mut Shard, now: Time, into: &mut Vec<u8>) -> u64 {
    let mut records = Records { into, count: 0 };
    shard.buckets.each(now, |key, cell| records.add(key, cell));
    shard.blocks.each(now, |key, cell| records.add(key, cell));
    shard.logs.each(now, |key, cell| records.add(key, cell));
    shard.fixed.each(now, |key, cell| records.add(key, cell));
    let rest = &mut *shard.rest;
    rest.leases.each(now, |key, cell| records.add(key, cell));
    rest.watches.each(now, |key, cell| records.add(key, cell));
    rest.marks.each(now, |key, cell| records.add(key, cell));
    rest.overflow.buckets.each(now, |key, cell| records.add(key, cell));
    rest.overflow.logs.each(now, |key, cell| records.add(key, cell));
    rest.overflow.fixed.each(now, |key, cell| records.add(key, cell));
    rest.overflow.leases.each(now, |key, cell| records.add(key, cell));
    // Oldest first, so that they come back in their order.
    rest.references.each(now, |key, cell| records.add(key, cell));
    records.count
}

struct Records<'a> {
    into: &'a mut Vec<u8>,
    count: u64,
}

impl Records<'_> {
    fn add<C: Codec>(&mut self, key: Key, cell: &C) {
        self.into.push(C::KIND as u8);
        self.into.extend_from_slice(&key.to_bytes());
        let length_at = self.into.len();
        self.into.extend_from_slice(&[0; 4]);
        cell.encode(self.into);
        let length = (self.into.len() - length_at - 4) as u32;
        self.into[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
        self.count += 1;
    }
}

/// Puts a record into the shard it belongs to.
pub(super) fn admit(
    shard: &mut Shard,
    kind: Kind,
    key: Key,
    bytes: &[u8],
    now: Time,
) -> Result<Admitted, CodecError> {
    match kind {
        Kind::Bucket => admit_counter::<Bucket>(shard, key, bytes, now),
        Kind::Log => admit_counter::<Log>(shard, key, bytes, now),
        Kind::Fixed => admit_counter::<Fixed>(shard, key, bytes, now),
        Kind::Leases => admit_counter::<Leases>(shard, key, bytes, now),
        Kind::Block => admit_block(shard, key, bytes, now),
        Kind::Watch => admit_other::<Watch>(shard, key, bytes, now),
        Kind::Mark => admit_other::<Mark>(shard, key, bytes, now),
        Kind::Reference => admit_other::<Reference>(shard, key, bytes, now),
    }
}

fn admit_counter<C: Counter + Codec>(
    shard: &mut Shard,
    key: Key,
    bytes: &[u8],
    now: Time,
) -> Result<Admitted, CodecError> {
    let cell = C::decode(bytes)?;
    if now >= cell.forgotten_at() {
        return Ok(Admitted::Forgotten);
    }
    shard.begin();
    shard.overflowing |= is_shared(key);
    Ok(kept_if(shard.put(key, cell, now)))
}

/// A block that stood may take the last place, whoever started it.
fn admit_block(
    shard: &mut Shard,
    key: Key,
    bytes: &[u8],
    now: Time,
) -> Result<Admitted, CodecError> {
    let block = Block::decode(bytes)?;
    if now >= block.forgotten_at() {
        return Ok(Admitted::Forgotten);
    }
    if !shard.fits_operator(block.weight(), now) {
        return Ok(Admitted::NoRoom);
    }
    shard.blocks.insert(key, block);
    Ok(Admitted::Kept)
}

fn admit_other<C: Codec>(
    shard: &mut Shard,
    key: Key,
    bytes: &[u8],
    now: Time,
) -> Result<Admitted, CodecError>
where
    Shard: Pool<C>,
{
    let cell = C::decode(bytes)?;
    if now >= cell.forgotten_at() {
        return Ok(Admitted::Forgotten);
    }
    Ok(kept_if(shard.put(key, cell, now)))
}

fn kept_if(kept: bool) -> Admitted {
    if kept { Admitted::Kept } else { Admitted::NoRoom }
}
