//! Blocks that this node knows of: a denial without a trip while the knowledge is fresh.
//!
//! Only blocks are kept, never an excess. What is known ends with the block, with a reply that does
//! not show it any more, or with an act here; another node's release is noticed within
//! [`FRESH`]. Must not grow without bound: what finds no room costs a trip, no more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use catraca_core::batch::{CheckRow, RowReply, Verdict};
use catraca_core::digest::Key;
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;

/// How long a block is believed in without asking.
const FRESH: Span = Span::from_secs(1);
/// Keys at most.
const KEYS_MAX: usize = 100_000;

/// Keys that are blocked, as the store last told.
#[derive(Debug, Default)]
pub(super) struct Known {
    keys: Mutex<HashMap<Key, Sight>>,
    /// How many, for whoever only wants to know whether there are any.
    count: AtomicUsize,
}

/// A block as it was last seen.
#[derive(Clone, Debug)]
struct Sight {
    /// When, by this node's clock and by the store's.
    seen: Time,
    now: Time,
    /// What was asked for: the wait depends on it.
    held: i64,
    row: RowReply,
}

impl Known {
    /// The reply for a row whose key is surely blocked, and the store's instant.
    pub fn fresh(&self, row: &CheckRow, now: Time) -> Option<(RowReply, Time)> {
        if self.is_empty() || row.shadow {
            return None;
        }
        let keys = self.keys.lock();
        let sight = keys.get(&row.key).filter(|sight| sight.held == row.held)?;
        let age = now.since(sight.seen);
        let there = sight.now.after(age);
        (age < FRESH && sight.until() > there).then(|| (sight.row.clone(), there))
    }

    /// Takes note of a block that a reply shows; says whether it is news.
    pub fn learn(&self, row: &CheckRow, reply: &RowReply, (seen, now): (Time, Time)) -> bool {
        let blocked = RowReply { verdict: Verdict::Blocked, started: false, ..reply.clone() };
        let sight = Sight { seen, now, held: row.held, row: blocked };
        let mut keys = self.keys.lock();
        if keys.len() >= KEYS_MAX {
            keys.retain(|_, old| old.until() > old.now.after(seen.since(old.seen)));
        }
        let until = sight.until();
        let before = keys.get(&row.key).map(Sight::until);
        if before.is_some() || keys.len() < KEYS_MAX {
            keys.insert(row.key, sight);
        }
        self.count.store(keys.len(), Ordering::Relaxed);
        before != Some(until)
    }

    /// Forgets a key; says whether it was known.
    pub fn forget(&self, key: Key) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut keys = self.keys.lock();
        let had = keys.remove(&key).is_some();
        self.count.store(keys.len(), Ordering::Relaxed);
        had
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut keys = self.keys.lock();
        keys.clear();
        self.count.store(0, Ordering::Relaxed);
    }

    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Sight {
    fn until(&self) -> Time {
        self.row.block.as_ref().map_or(Time::ZERO, |block| block.until)
    }
}
