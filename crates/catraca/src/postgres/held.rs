//! The rows that a transaction holds, as the cells of the rules.
//!
//! Every key of the batches has its place here, also one without a row. Must not write a row that
//! is not locked, nor one that could not be read.

use catraca_core::batch::{Batch, Reply};
use catraca_core::cell::{
    Block, Bucket, Cells, Fixed, Leases, Log, Mark, Place, Pool, Reference, Watch,
};
use catraca_core::codec::Codec;
use catraca_core::digest::Key;
use catraca_core::run::{RULES_MAX, run, strikes_key};
use catraca_core::time::Time;

use super::keys::Keys;
use super::row::{Cluster, NEVER};
use crate::store::{StoreError, When};

/// The rows of some keys, in their order.
#[derive(Debug)]
pub(super) struct Held {
    rows: Vec<Entry>,
    /// The server's clock, read when all rows were locked.
    now: Time,
    /// The earliest instant of all: what is forgotten by then is forgotten for everybody.
    earliest: Time,
    /// Whether an instant was given, which says nothing about the server's clock.
    given: bool,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    cluster: Cluster,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The row is locked and had this body.
    Locked(Vec<u8>),
    /// There is no row, and none was asked for.
    Absent,
    /// There is one that somebody else holds.
    Missed,
    /// It is locked and cannot be read.
    Damaged(String),
}

/// What a transaction has to write.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub keys: Vec<[u8; 16]>,
    pub bodies: Vec<Vec<u8>>,
    pub ends: Vec<i64>,
    pub gone: Vec<[u8; 16]>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.gone.is_empty()
    }
}

impl Held {
    /// What a transaction has found for its keys: locked rows, and keys that it should have locked.
    pub(super) fn new(keys: &Keys, locked: &[(&[u8], &[u8])], missed: &[&[u8]], now: Time) -> Self {
        let entry = |(key, made): (Key, bool)| {
            let bytes = key.to_bytes();
            let found = locked.binary_search_by(|(known, _)| (*known).cmp(&bytes[..]));
            match found {
                Ok(place) => Entry::locked(key, locked[place].1),
                Err(_) if made || missed.contains(&&bytes[..]) => Entry::new(key, State::Missed),
                Err(_) => Entry::new(key, State::Absent),
            }
        };
        let made = keys.make.iter().map(|key| (*key, true));
        let looked = keys.look.iter().map(|key| (*key, false));
        let mut rows: Vec<Entry> = made.chain(looked).map(entry).collect();
        rows.sort_unstable_by_key(|entry| entry.key);
        Self { rows, now, earliest: now, given: false }
    }

    /// Whether a row came or went while the others were locked.
    pub(super) fn is_torn(&self) -> bool {
        self.rows.iter().any(|entry| matches!(entry.state, State::Missed))
    }

    /// Applies a batch, unless one of its rows cannot be had.
    pub(super) fn apply(&mut self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        self.check(batch)?;
        self.mend(batch);
        let now = match when {
            When::Store => self.now,
            When::At(time) => time,
        };
        self.given |= when != When::Store;
        self.earliest = self.earliest.min(now);
        Ok(run(batch, self, now))
    }

    /// A reset forgets whatever is there, also what nobody can read.
    fn mend(&mut self, batch: &Batch) {
        let Batch::Reset(keys) = batch else { return };
        for key in keys {
            if let Some(entry) = self.entry(*key)
                && matches!(entry.state, State::Damaged(_))
            {
                entry.state = State::Locked(Vec::new());
            }
        }
    }

    fn check(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let mut fault = None;
        batch.each_key(|key| {
            let state = self.entry(key).map(|entry| &entry.state);
            fault = fault.take().or(match state {
                Some(State::Missed) => Some(StoreError::unavailable(super::HELD)),
                Some(State::Damaged(_)) if matches!(batch, Batch::Reset(_)) => None,
                Some(State::Damaged(why)) => Some(StoreError::corrupt(format!(
                    "the row of key {key:?}: {why}; a reset of the key removes it"
                ))),
                Some(State::Locked(_) | State::Absent) => None,
                None => Some(StoreError::corrupt("a batch that names other keys than it has")),
            });
        });
        fault.map_or(Ok(()), Err)
    }

    /// What the batches have changed. A row that is not locked cannot have changed: a batch that
    /// writes says so beforehand.
    pub(super) fn changes(&self) -> Result<Changes, StoreError> {
        let mut changes = Changes::default();
        for entry in &self.rows {
            let (body, ends) = entry.cluster.encode(self.earliest);
            let key = entry.key.to_bytes();
            match &entry.state {
                State::Locked(_) if body.is_empty() => changes.gone.push(key),
                State::Locked(before) if *before != body => {
                    changes.keys.push(key);
                    changes.bodies.push(body);
                    changes.ends.push(if self.given { NEVER } else { ends });
                }
                State::Absent if !body.is_empty() => {
                    return Err(StoreError::corrupt("a batch that writes where it only looks"));
                }
                _ => {}
            }
        }
        Ok(changes)
    }

    fn entry(&mut self, key: Key) -> Option<&mut Entry> {
        let place = self.rows.binary_search_by_key(&key, |entry| entry.key).ok()?;
        Some(&mut self.rows[place])
    }

    /// Strikes lie beside their key and have the same first half.
    fn strikes(&mut self, key: Key) -> Option<&mut Option<Log>> {
        let [first, _] = key.words();
        let start = self.rows.partition_point(|entry| entry.key.words()[0] < first);
        let near = self.rows[start..].iter_mut().take_while(|entry| entry.key.words()[0] == first);
        let mut found = near.filter_map(|entry| {
            let rule = (0..RULES_MAX).find(|rule| strikes_key(entry.key, *rule) == key)?;
            Some(entry.cluster.strikes(rule))
        });
        found.next()
    }
}

impl Entry {
    fn new(key: Key, state: State) -> Self {
        Self { key, cluster: Cluster::default(), state }
    }

    fn locked(key: Key, body: &[u8]) -> Self {
        match Cluster::decode(body) {
            Ok(cluster) => Self { key, cluster, state: State::Locked(body.to_owned()) },
            Err(error) => Self::new(key, State::Damaged(error.to_string())),
        }
    }
}

/// No budget but the disk: every key has cells of its own.
impl Cells for Held {
    fn place(&mut self, _: Key, _: u64, _: Time) -> Place {
        Place::Own
    }
}

/// A cell that a row may hold.
trait Kept: Codec {
    fn of(cluster: &mut Cluster) -> &mut Option<Self>;

    fn slot(held: &mut Held, key: Key) -> Option<&mut Option<Self>> {
        held.entry(key).map(|entry| Self::of(&mut entry.cluster))
    }
}

impl<C: Kept> Pool<C> for Held {
    fn get(&mut self, key: Key, now: Time) -> Option<&mut C> {
        C::slot(self, key)?.as_mut().filter(|cell| now < cell.forgotten_at())
    }

    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R> {
        self.get(key, now).map(change)
    }

    fn put(&mut self, key: Key, cell: C, _: Time) -> bool {
        let slot = C::slot(self, key);
        slot.map(|slot| *slot = Some(cell)).is_some()
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        let removed = C::slot(self, key).and_then(Option::take);
        removed.is_some_and(|cell| now < cell.forgotten_at())
    }
}

impl Kept for Log {
    fn of(cluster: &mut Cluster) -> &mut Option<Self> {
        &mut cluster.log
    }

    fn slot(held: &mut Held, key: Key) -> Option<&mut Option<Self>> {
        if held.entry(key).is_none() {
            return held.strikes(key);
        }
        held.entry(key).map(|entry| &mut entry.cluster.log)
    }
}

macro_rules! kept {
    ($($cell:ty => $field:ident),* $(,)?) => {$(
        impl Kept for $cell {
            fn of(cluster: &mut Cluster) -> &mut Option<Self> {
                &mut cluster.$field
            }
        }
    )*};
}

kept! {
    Bucket => bucket,
    Fixed => fixed,
    Leases => leases,
    Block => block,
    Watch => watch,
    Mark => mark,
    Reference => reference,
}
