//! Block cache: denies without a call to the store while an entry is fresh.
//!
//! Only blocks are cached, never a denial for excess. An entry ends with its block, with a reply
//! that no longer shows it, or with an operator's act on this node. A release on another node is
//! noticed within [`FRESH`]. The cache is bounded: a block that is not cached costs a call, nothing
//! more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use catraca_core::batch::{CheckRow, RowReply, RowVerdict};
use catraca_core::digest::Key;
use catraca_core::limit::Limit;
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;

/// How long an entry denies without a call.
const FRESH: Span = Span::from_secs(1);
/// The maximum number of entries.
const KEYS_MAX: usize = 100_000;

/// Blocked keys, as the store last reported them.
#[derive(Debug, Default)]
pub(super) struct BlockCache {
    keys: Mutex<HashMap<Key, CachedBlock>>,
    /// The number of entries, readable without the lock.
    count: AtomicUsize,
}

/// The last reply that showed the block.
#[derive(Clone, Debug)]
struct CachedBlock {
    /// When it was received, by this node's clock and by the store's (`now`).
    received_at: Time,
    now: Time,
    /// The held units of the row; the announced wait depends on them.
    held: i64,
    /// The limit and the counter of the row. The figures are theirs, and the key may have others in
    /// another tier.
    limit: Limit,
    tier_counter: Option<u32>,
    row: RowReply,
}

impl BlockCache {
    /// The reply for a blocked row, and the instant by the store's clock.
    pub fn get_fresh(&self, row: &CheckRow, now: Time) -> Option<(RowReply, Time)> {
        if self.is_empty() || row.shadow {
            return None;
        }
        let keys = self.keys.lock();
        let cached = keys.get(&row.key).filter(|cached| cached.answers(row))?;
        // The two clocks are never compared: the time that has passed here is added to the store's
        // instant.
        let age = now.since(cached.received_at);
        let store_now = cached.now.after(age);
        (age < FRESH && cached.until() > store_now).then(|| (cached.row.clone(), store_now))
    }

    /// Stores a block that a reply shows. Returns whether its end is new.
    pub fn insert(&self, row: &CheckRow, reply: &RowReply, received_at: Time, now: Time) -> bool {
        let blocked = RowReply { verdict: RowVerdict::Blocked, started: false, ..reply.clone() };
        let cached = CachedBlock {
            received_at,
            now,
            held: row.held,
            limit: row.limit.clone(),
            tier_counter: row.tier_counter,
            row: blocked,
        };
        let mut keys = self.keys.lock();
        if keys.len() >= KEYS_MAX {
            keys.retain(|_, old| old.until() > old.now.after(received_at.since(old.received_at)));
        }
        let until = cached.until();
        let before = keys.get(&row.key).map(CachedBlock::until);
        if before.is_some() || keys.len() < KEYS_MAX {
            keys.insert(row.key, cached);
        }
        self.count.store(keys.len(), Ordering::Relaxed);
        before != Some(until)
    }

    /// Removes a key. Returns whether it was cached.
    pub fn forget(&self, key: Key) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut keys = self.keys.lock();
        let had = keys.remove(&key).is_some();
        self.count.store(keys.len(), Ordering::Relaxed);
        had
    }

    /// Removes the entries of some keys.
    pub fn forget_all(&self, is_unwanted: impl Fn(Key) -> bool) {
        let mut keys = self.keys.lock();
        keys.retain(|key, _| !is_unwanted(*key));
        self.count.store(keys.len(), Ordering::Relaxed);
    }

    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl CachedBlock {
    /// Whether the figures are those of this row.
    fn answers(&self, row: &CheckRow) -> bool {
        self.held == row.held && self.tier_counter == row.tier_counter && self.limit == row.limit
    }

    fn until(&self) -> Time {
        self.row.block.as_ref().map_or(Time::ZERO, |block| block.until)
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::cell::Block;
    use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
    use catraca_core::limit::{BucketTerms, Penalty};

    use super::*;

    #[test]
    fn a_block_that_another_tier_has_seen_does_not_give_its_figures() {
        let limit = Limit::Bucket(BucketTerms { size: 3, tokens: 1, period: 1 });
        let row = CheckRow::new(Key::from_bytes([1; 16]), limit);
        let now = Time::from_micros(1_000_000);
        let penalty = Penalty::without_escalation(Span::from_secs(60));
        let proposal = BlockProposal::new(penalty, Origin::Ban, false, BlockNote::default());
        let reply = RowReply {
            verdict: RowVerdict::Blocked,
            at: now,
            charged: 0,
            limit: Some(3),
            free: 3,
            fits_at: None,
            full_at: now,
            block: Some(Box::new(Block::from_proposal(&proposal, now))),
            started: true,
            is_overflow: false,
            windows: Box::default(),
        };
        let cache = BlockCache::default();
        assert!(cache.insert(&row, &reply, now, now));
        assert!(cache.get_fresh(&row, now).is_some());
        let other_tier = CheckRow { tier_counter: Some(7), ..row.clone() };
        assert!(cache.get_fresh(&other_tier, now).is_none());
        let limit = Limit::Bucket(BucketTerms { size: 9, tokens: 1, period: 1 });
        assert!(cache.get_fresh(&CheckRow { limit, ..row }, now).is_none());
    }
}
