//! Batches and replies: the operations that a store applies atomically, as plain data.
//!
//! Every store implements exactly these operations; `docs/batch.md` lists each with its cells and
//! numeric bounds. No batch refers to a policy, a subject or a protocol, so that a store needs none
//! of them.

mod settle;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::algorithm::SharedBuckets;
use crate::cell::block::{Block, BlockProposal};
use crate::digest::{Key, tier_bits};
use crate::limit::{BucketTerms, Limit, Penalty};
use crate::policy::OnFailure;
use crate::time::{Span, Time};

pub use settle::{
    BanRow, CreditBatch, CreditReply, CreditRow, ReferenceUpdate, RowSettlement, SettleBatch,
    SettleReply, SettleRow, StoredReference, WatchRow,
};

/// One atomic operation of a store.
#[derive(Clone, Debug, PartialEq)]
pub enum Batch {
    /// Decide, and charge all rows or none.
    Check(CheckBatch),
    /// Replace the held amounts of a check by their real costs, once.
    Settle(SettleBatch),
    /// Read a stored reference.
    Recall(Key),
    /// Give units back to buckets, once per reference and event.
    Credit(CreditBatch),
    /// Block keys, each as proposed.
    Block(Vec<(Key, BlockProposal)>),
    /// Release the blocks of keys.
    Unblock(Vec<UnblockRow>),
    /// Remove all state of keys.
    Reset(Vec<Key>),
    /// Correct buckets with the level that an upstream reports.
    Reconcile(Vec<ReconcileRow>),
}

/// Ends that differ by no more than this are those of one block.
pub const SAME_END: Span = Span::from_secs(10);

/// A key whose block is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnblockRow {
    /// The key.
    pub key: Key,
    /// Releases only a block with this end, up to [`SAME_END`]: with another one, a later block has
    /// started, or this one was extended. Absent for whichever block the key has.
    pub only_until: Option<Time>,
}

impl From<Key> for UnblockRow {
    fn from(key: Key) -> Self {
        Self { key, only_until: None }
    }
}

/// The reply to the batch of the same name.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The verdict and figures of each row.
    Check(CheckReply),
    /// The result of each row, or why nothing was settled.
    Settle(SettleReply),
    /// The reference, unless it is unknown or has expired.
    Recall(Option<StoredReference>),
    /// What the credit did.
    Credit(CreditReply),
    /// The active block of each key afterwards, also a shadow block. Absent if there is none: the
    /// store has no room for it, or only a level was restored.
    Block(Vec<Option<BlockReply>>),
    /// For each key, whether its block was released.
    Unblock(Vec<bool>),
    /// The instant of the reset.
    Reset(Time),
    /// The level of each bucket before and after.
    Reconcile(Vec<BucketAdjustment>),
}

/// A check: one decision over all policies of a gate.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CheckBatch {
    /// One row per (policy, key), in gate order. No two rows have the same key. A single row, the
    /// most common check, needs no allocation.
    pub rows: SmallVec<[CheckRow; 1]>,
    /// Whether this is a peek: nothing is charged and nothing starts.
    pub peek: bool,
    /// Whether the check is denied for a reason outside its rows, such as a missing key attribute.
    /// Rows are evaluated, but not charged.
    pub already_denied: bool,
    /// The reference to store if the check passes.
    pub new_reference: Option<Box<NewReference>>,
}

/// One (policy, key) of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckRow {
    /// The digest of (namespace, policy, key parts).
    pub key: Key,
    /// The tier whose own counter is charged; absent if the row uses the counter of `key` itself.
    /// Blocks are at `key` in both cases.
    pub tier_counter: Option<u32>,
    /// The buckets of the other tiers that share the counter; absent if there are none, or they
    /// are equal to `limit`.
    pub shared: Option<Arc<SharedBuckets>>,
    /// The same for all keys of a policy. Selects the overflow cell when memory is full.
    pub family: u64,
    /// The algorithm and its numbers. They travel with each batch, since stores know no policies.
    pub limit: Limit,
    /// Units to charge, before the real cost is known.
    pub held: i64,
    /// The block that starts when the row is over its limit.
    pub penalty: Option<Penalty>,
    /// Whether the policy is in shadow mode: evaluated and counted, but never denies.
    pub shadow: bool,
    /// Whether a denial because of this row's own limit is charged too (`count_denied`).
    pub count_denied: bool,
    /// The id of the lease to take; used by in-flight rows only.
    pub lease: u64,
    /// What the row does if the store has no room for a new counter.
    pub on_full: OnFailure,
}

// Every check has one of each per policy.
const _: () = assert!(size_of::<CheckRow>() <= 136);
const _: () = assert!(size_of::<RowReply>() <= 96);

impl CheckRow {
    /// A row that charges one unit of `limit`, and starts no block. Rows that differ are written
    /// as `CheckRow { held: 2, ..CheckRow::new(key, limit) }`.
    pub fn new(key: Key, limit: Limit) -> CheckRow {
        CheckRow {
            key,
            tier_counter: None,
            shared: None,
            family: 0,
            limit,
            held: 1,
            penalty: None,
            shadow: false,
            count_denied: false,
            lease: 0,
            on_full: OnFailure::Local,
        }
    }

    /// The counter of the row.
    #[inline]
    pub fn counter(&self) -> RowCounter<'_> {
        RowCounter {
            shared: self.shared.as_deref(),
            ..RowCounter::new(self.key, self.tier_counter, self.family)
        }
    }
}

/// The counter of a row: its key, and the family whose overflow cell it uses when memory is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCounter<'a> {
    /// The key of the counter, in the shard and group of the row's key.
    pub key: Key,
    /// The counters that may share an overflow cell.
    pub family: u64,
    /// The buckets of the other tiers that share the counter.
    pub shared: Option<&'a SharedBuckets>,
}

impl RowCounter<'_> {
    /// The counter of a key: that of a tier, or the one that its other tiers share.
    #[inline]
    pub fn new(key: Key, tier: Option<u32>, family: u64) -> Self {
        match tier {
            None => Self { key, family, shared: None },
            // Counters of different tiers have different limits, so they must not share a cell.
            Some(tier) => {
                Self { key: key.with_tier(tier), family: family ^ tier_bits(tier), shared: None }
            }
        }
    }
}

/// A reference to store: the check that a later settle or credit finds by its `ref`.
#[derive(Clone, Debug, PartialEq)]
pub struct NewReference {
    /// The reference's key.
    pub key: Key,
    /// Identifies the owning check: the key of its settled-marker, which is unique per check.
    pub owner: Key,
    /// The body of the ticket in plain bytes. The instants of its rows are known only to the store,
    /// which adds them.
    pub ticket: Box<[u8]>,
    /// How long the reference is stored.
    pub span: Span,
}

/// The reply to a check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckReply {
    /// The instant of the batch, by the store's clock.
    pub now: Time,
    /// Whether the check is allowed: not denied already, and every enforcing row fits.
    pub passed: bool,
    /// Whether this check now owns its reference. False if another check owns it.
    pub remembered: bool,
    /// One reply per row of the check, in the same order.
    pub rows: SmallVec<[RowReply; 1]>,
}

/// Whether a row fits, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowVerdict {
    /// Enough units are free.
    Fits,
    /// A block is active.
    Blocked,
    /// The amount is larger than the capacity, so it can never fit.
    TooCostly,
    /// Too few units are free now.
    OverLimit,
    /// The policy denies without a counter (`on_failure = "closed"`), and there is none: the store
    /// has no room for a new one, or the engine could not reach the store.
    Unavailable,
}

/// The reply for one row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowReply {
    /// Whether the row fits.
    pub verdict: RowVerdict,
    /// The instant used for this row: later than that of the batch if its counter was last written
    /// later.
    pub at: Time,
    /// Units charged by this check.
    pub charged: i64,
    /// The limit, or that of the window with the fewest free units; absent without a limit.
    pub limit: Option<i64>,
    /// Free units after the charge; negative for a bucket in debt. Of several windows, the fewest.
    pub free: i64,
    /// When the same check would fit if no other request came; absent if it fits, forever if it
    /// never will.
    pub fits_at: Option<Time>,
    /// When the full quota is available and no block is active.
    pub full_at: Time,
    /// The active block after this check.
    pub block: Option<Box<Block>>,
    /// Whether this check started the block.
    pub started: bool,
    /// Whether the store has no room for a counter of this key. By `on_full`, the row was counted
    /// in an overflow cell, shared with other keys, or not at all.
    pub is_overflow: bool,
    /// The figures of each window, in the order of the policy; empty unless there are several.
    pub windows: Box<[WindowFigures]>,
}

/// The figures of one of several windows, without the block of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowFigures {
    /// Free units after the charge.
    pub free: i64,
    /// When the same check would fit in this window; absent if it fits, forever if it never will.
    pub fits_at: Option<Time>,
    /// When the window is empty.
    pub full_at: Time,
}

/// The reply for one key to block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockReply {
    /// The active block.
    pub block: Block,
    /// Whether this batch started the block, or changed its end or mode.
    pub changed: bool,
}

/// The level of one bucket as an upstream observed it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReconcileRow {
    /// The key of the bucket.
    pub key: Key,
    /// The terms of the bucket in the active catalog.
    pub terms: BucketTerms,
    /// The buckets of the other tiers that share this one.
    pub shared: Option<Arc<SharedBuckets>>,
    /// Tokens that the upstream reported.
    pub available: i64,
    /// When the upstream observed them.
    pub observed_at: Time,
}

/// The level of a bucket before and after a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketAdjustment {
    /// Tokens before.
    pub before: i64,
    /// Tokens after.
    pub after: i64,
}

impl Batch {
    /// Calls `visit` with every key that the batch names. A store locks these; the keys of strikes
    /// are derived from them and are in the same shard.
    #[inline]
    pub fn each_key(&self, mut visit: impl FnMut(Key)) {
        match self {
            Self::Check(check) => {
                for row in &check.rows {
                    visit_row(row.key, row.tier_counter, &mut visit);
                }
                check.new_reference.iter().for_each(|remember| visit(remember.key));
            }
            Self::Settle(settle) => {
                visit(settle.marker);
                for row in &settle.rows {
                    visit_row(row.key, row.tier_counter, &mut visit);
                }
                settle.reference.iter().for_each(|update| visit(update.key));
            }
            Self::Recall(key) => visit(*key),
            Self::Credit(credit) => {
                visit(credit.reference);
                credit.rows.iter().for_each(|row| visit(row.key));
            }
            Self::Block(rows) => rows.iter().for_each(|(key, _)| visit(*key)),
            Self::Unblock(rows) => rows.iter().for_each(|row| visit(row.key)),
            Self::Reset(keys) => keys.iter().for_each(|key| visit(*key)),
            Self::Reconcile(rows) => rows.iter().for_each(|row| visit(row.key)),
        }
    }
}

#[inline]
fn visit_row(key: Key, tier_counter: Option<u32>, visit: &mut impl FnMut(Key)) {
    visit(key);
    if let Some(tier) = tier_counter {
        visit(key.with_tier(tier));
    }
}
