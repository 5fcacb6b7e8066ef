//! The rows that a transaction has locked, as the cell store on which core's rules run.
//!
//! There is an entry for every key of the batches, even if it has no row. Rows that are not locked,
//! or that could not be decoded, are never written.

use std::any::Any;

use catraca_core::batch::{Batch, Reply};
use catraca_core::cell::{CellTable, SlidingWindow};
use catraca_core::digest::Key;
use catraca_core::run::{RULES_MAX, run, strikes_key};
use catraca_core::time::Time;

use super::key_cells::{KeyCells, NEVER, RowCell};
use super::row_keys::RowKeys;
use crate::store::{StoreError, When};

/// The rows of all keys of a transaction, in the order of the keys.
#[derive(Debug)]
pub(super) struct LockedRows {
    rows: Vec<KeyEntry>,
    /// The server's clock, read when all rows were locked.
    now: Time,
    /// The earliest instant of all batches: a cell that is forgotten by then is forgotten for all
    /// of them and need not be written.
    earliest: Time,
    /// Whether a batch had an explicit instant. The sweep, which uses the server's clock, must not
    /// delete such rows.
    has_explicit_time: bool,
}

/// A key and its row.
#[derive(Debug)]
struct KeyEntry {
    key: Key,
    cells: KeyCells,
    state: RowState,
}

#[derive(Debug)]
enum RowState {
    /// The row is locked and had this body.
    Locked(Vec<u8>),
    /// There is no row, and none was to be created.
    Absent,
    /// There is a row that another transaction has locked, or that was created meanwhile.
    Missed,
    /// The row is locked and cannot be decoded, for this reason.
    Damaged(String),
}

/// What a transaction has to write: `catraca_store.put` takes these arrays.
#[derive(Debug, Default)]
pub(super) struct RowChanges {
    pub keys: Vec<[u8; 16]>,
    pub bodies: Vec<Vec<u8>>,
    /// When each row may be swept, in seconds.
    pub ends: Vec<i64>,
    /// Rows to delete.
    pub gone: Vec<[u8; 16]>,
}

impl RowChanges {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.gone.is_empty()
    }
}

impl LockedRows {
    /// `locked` are keys and bodies of the locked rows, sorted by key; `missed` are existing rows
    /// that could not be locked.
    pub(super) fn new(
        keys: &RowKeys,
        locked: &[(&[u8], &[u8])],
        missed: &[&[u8]],
        now: Time,
    ) -> Self {
        let entry = |key: Key, is_created: bool| {
            let bytes = key.to_bytes();
            let found = locked.binary_search_by(|(row_key, _)| (*row_key).cmp(&bytes[..]));
            match found {
                Ok(index) => KeyEntry::from_locked_row(key, locked[index].1),
                // A row that was to be created exists, so it is locked by another transaction.
                Err(_) if is_created || missed.contains(&&bytes[..]) => {
                    KeyEntry::new(key, RowState::Missed)
                }
                Err(_) => KeyEntry::new(key, RowState::Absent),
            }
        };
        let created = keys.create.iter().map(|key| entry(*key, true));
        let existing = keys.existing.iter().map(|key| entry(*key, false));
        let mut rows: Vec<KeyEntry> = created.chain(existing).collect();
        rows.sort_unstable_by_key(|entry| entry.key);
        Self { rows, now, earliest: now, has_explicit_time: false }
    }

    /// Whether some rows are not locked: they were created while the others were being locked, or
    /// another transaction holds them. A batch on such rows might see half of another batch.
    pub(super) fn has_missed_rows(&self) -> bool {
        self.rows.iter().any(|entry| matches!(entry.state, RowState::Missed))
    }

    /// Applies a batch, unless one of its rows is not locked or cannot be decoded.
    pub(super) fn apply(&mut self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        self.check(batch)?;
        self.clear_damaged(batch);
        let now = match when {
            When::Store => self.now,
            When::At(time) => time,
        };
        self.has_explicit_time |= when != When::Store;
        self.earliest = self.earliest.min(now);
        Ok(run(batch, self, now))
    }

    /// A reset deletes rows that cannot be decoded, too.
    fn clear_damaged(&mut self, batch: &Batch) {
        let Batch::Reset(keys) = batch else { return };
        for key in keys {
            if let Some(entry) = self.entry(*key)
                && matches!(entry.state, RowState::Damaged(_))
            {
                entry.state = RowState::Locked(Vec::new());
            }
        }
    }

    /// Fails if a row of the batch cannot be used.
    fn check(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let mut error = None;
        batch.each_key(|key| {
            let state = self.entry(key).map(|entry| &entry.state);
            error = error.take().or(match state {
                Some(RowState::Missed) => Some(StoreError::unavailable(super::ROWS_LOCKED)),
                Some(RowState::Damaged(_)) if matches!(batch, Batch::Reset(_)) => None,
                Some(RowState::Damaged(why)) => Some(StoreError::corrupt(format!(
                    "the row of key {key:?}: {why}; a reset of the key removes it"
                ))),
                Some(RowState::Locked(_) | RowState::Absent) => None,
                None => {
                    Some(StoreError::corrupt("a batch has rows with keys that it does not list"))
                }
            });
        });
        error.map_or(Ok(()), Err)
    }

    /// The rows that the batches have changed. A row has changed exactly if its bytes have.
    pub(super) fn changes(&self) -> Result<RowChanges, StoreError> {
        let mut changes = RowChanges::default();
        for entry in &self.rows {
            let (body, ends) = entry.cells.encode(self.earliest);
            let key = entry.key.to_bytes();
            match &entry.state {
                RowState::Locked(_) if body.is_empty() => changes.gone.push(key),
                RowState::Locked(before) if *before != body => {
                    changes.keys.push(key);
                    changes.bodies.push(body);
                    changes.ends.push(if self.has_explicit_time { NEVER } else { ends });
                }
                // `RowKeys` lists every key that may be written, so this is a bug.
                RowState::Absent if !body.is_empty() => {
                    return Err(StoreError::corrupt(
                        "a batch writes a key that is listed as read-only",
                    ));
                }
                _ => {}
            }
        }
        Ok(changes)
    }

    fn entry(&mut self, key: Key) -> Option<&mut KeyEntry> {
        let index = self.index(key)?;
        Some(&mut self.rows[index])
    }

    fn index(&self, key: Key) -> Option<usize> {
        self.rows.binary_search_by_key(&key, |entry| entry.key).ok()
    }

    /// The cell of a kind. A key without a row of its own is that of strikes, which are sliding
    /// windows.
    fn slot<C: RowCell>(&mut self, key: Key) -> Option<&mut Option<C>> {
        match self.index(key) {
            Some(index) => Some(C::of(&mut self.rows[index].cells)),
            None => (self.strikes(key)? as &mut dyn Any).downcast_mut(),
        }
    }

    /// The strikes with this key. They are stored in the row of the key that they belong to; both
    /// keys have the same first half, so only rows with that half are searched.
    fn strikes(&mut self, key: Key) -> Option<&mut Option<SlidingWindow>> {
        let [first, _] = key.words();
        let start = self.rows.partition_point(|entry| entry.key.words()[0] < first);
        let candidates =
            self.rows[start..].iter_mut().take_while(|entry| entry.key.words()[0] == first);
        let mut found = candidates.filter_map(|entry| {
            let rule = (0..RULES_MAX).find(|rule| strikes_key(entry.key, *rule) == key)?;
            Some(entry.cells.strikes(rule))
        });
        found.next()
    }
}

impl KeyEntry {
    fn new(key: Key, state: RowState) -> Self {
        Self { key, cells: KeyCells::default(), state }
    }

    fn from_locked_row(key: Key, body: &[u8]) -> Self {
        match KeyCells::decode(body) {
            Ok(cells) => Self { key, cells, state: RowState::Locked(body.to_owned()) },
            Err(error) => Self::new(key, RowState::Damaged(error.to_string())),
        }
    }
}

/// Only the disk limits the number of keys, so every key has its own cells.
impl<C: RowCell> CellTable<C> for LockedRows {
    fn get(&mut self, key: Key, now: Time) -> Option<&mut C> {
        let slot: Option<&mut Option<C>> = self.slot(key);
        slot?.as_mut().filter(|cell| now < cell.expires_at())
    }

    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R> {
        self.get(key, now).map(change)
    }

    fn put(&mut self, key: Key, cell: C, _: Time) -> bool {
        let slot: Option<&mut Option<C>> = self.slot(key);
        slot.map(|slot| *slot = Some(cell)).is_some()
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        let removed: Option<C> = self.slot(key).and_then(Option::take);
        removed.is_some_and(|cell| now < cell.expires_at())
    }
}
