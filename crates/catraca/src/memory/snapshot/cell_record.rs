//! Records of a snapshot: kind, key, length and bytes of one cell.

use catraca_core::cell::{Block, Cell, CellKind, CellTable};
use catraca_core::codec::{Codec, CodecError};
use catraca_core::digest::Key;
use catraca_core::time::Time;
use catraca_core::{for_each_algorithm, for_each_kind};

use crate::memory::overflow::{OverflowCell, OverflowTables, is_overflow_key};
use crate::memory::partitioned_shard::PartitionedShard;
use crate::memory::shard::StoredCell;

/// What happened to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordAdmission {
    Restored,
    Expired,
    NoRoom,
}

macro_rules! add_cells {
    (
        ($records:ident, $shard:expr, $now:expr)
        $($(#[$doc:meta])* $kind:ident($cell:ty) $field:ident $columns:tt)*
    ) => {
        $(<$cell>::table_mut($shard).for_each_live($now, |key, cell| $records.add(key, cell));)*
    };
}

macro_rules! add_overflow_cells {
    (
        ($records:ident, $tables:expr, $now:expr)
        $($(#[$doc:meta])* $name:ident($terms:ty, $cell:ty) $field:ident;)*
    ) => {
        $($tables.$field.for_each_live($now, |key, cell| $records.add(key, cell));)*
    };
}

/// Appends the records of all unexpired cells of a shard. Returns their number. References come
/// oldest first: reading them in this order restores the order in which they are dropped.
pub(super) fn encode(shard: &mut PartitionedShard, now: Time, into: &mut Vec<u8>) -> u64 {
    let mut records = CellWriter { into, count: 0 };
    for part in shard.parts_mut() {
        for_each_kind!(add_cells records, part, now);
    }
    records.count
}

/// Appends the records of all unexpired overflow cells. Returns their number.
pub(super) fn encode_overflow(tables: &OverflowTables, now: Time, into: &mut Vec<u8>) -> u64 {
    let mut records = CellWriter { into, count: 0 };
    for_each_algorithm!(add_overflow_cells records, tables, now);
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

macro_rules! admit_kind {
    (
        ($wanted:expr, $target:expr, $key:expr, $bytes:expr, $now:expr)
        $($(#[$doc:meta])* $kind:ident($cell:ty) $field:ident $columns:tt)*
    ) => {
        match $wanted {
            $(CellKind::$kind => admit_cell::<$cell>($target, $key, $bytes, $now),)*
        }
    };
}

/// Where the record of a key is inserted.
pub(super) struct RestoreTarget<'m> {
    pub shard: &'m mut PartitionedShard,
    pub overflow: &'m mut OverflowTables,
}

/// Decodes a record and inserts it into its shard, or among the overflow cells.
pub(super) fn admit(
    target: RestoreTarget<'_>,
    kind: CellKind,
    key: Key,
    bytes: &[u8],
    now: Time,
) -> Result<RecordAdmission, CodecError> {
    if kind == CellKind::Block {
        return admit_block(target.shard, key, bytes, now);
    }
    for_each_kind!(admit_kind kind, target, key, bytes, now)
}

fn admit_cell<C: Codec + OverflowCell>(
    target: RestoreTarget<'_>,
    key: Key,
    bytes: &[u8],
    now: Time,
) -> Result<RecordAdmission, CodecError>
where
    PartitionedShard: CellTable<C>,
{
    let cell = C::decode(bytes)?;
    if now >= cell.expires_at() {
        return Ok(RecordAdmission::Expired);
    }
    let RestoreTarget { shard, overflow } = target;
    // No reservations: a restored counter must fit into the budget.
    shard.begin_batch();
    let has_room = match C::HAS_OVERFLOW && is_overflow_key(key) {
        true => overflow.put(key, cell, now),
        false => shard.put(key, cell, now),
    };
    Ok(if has_room { RecordAdmission::Restored } else { RecordAdmission::NoRoom })
}

fn admit_block(
    shard: &mut PartitionedShard,
    key: Key,
    bytes: &[u8],
    now: Time,
) -> Result<RecordAdmission, CodecError> {
    let block = Block::decode(bytes)?;
    if now >= block.expires_at() {
        return Ok(RecordAdmission::Expired);
    }
    let has_room = shard.restore_block(key, block, now);
    Ok(if has_room { RecordAdmission::Restored } else { RecordAdmission::NoRoom })
}
