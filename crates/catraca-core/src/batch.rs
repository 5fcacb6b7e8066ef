//! The store's language: batches of plain data in, replies out, applied atomically or not at all.
//!
//! Every store speaks exactly this; `docs/batch.md` lists each operation with its cells and bounds.
//! Must not mention policies, subjects or anything of the wire.

mod settle;

use smallvec::SmallVec;

use crate::cell::block::{Act, Note, Origin};
use crate::digest::Key;
use crate::limit::{BucketTerms, Limit, Penalty};
use crate::time::{Span, Time};

pub use settle::{
    BanRow, Credit, CreditReply, CreditRow, Recalled, RowSettled, Settle, SettleReply, SettleRow,
    Told, WatchRow,
};

/// One atomic request to a store.
#[derive(Clone, Debug, PartialEq)]
pub enum Batch {
    /// Decide, and charge all rows or none.
    Check(Check),
    /// Turn reservations into real costs, once.
    Settle(Settle),
    /// Read what is remembered of a reference.
    Recall(Key),
    /// Give back to buckets, once per reference and event.
    Credit(Credit),
    /// Block some keys.
    Block(Vec<BlockRow>),
    /// End the blocks of some keys.
    Unblock(Vec<Key>),
    /// Forget everything about some keys.
    Reset(Vec<Key>),
    /// Take an upstream's view of some buckets.
    Reconcile(Vec<ReconcileRow>),
}

/// The answer to a batch, of the same name.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// One answer per row.
    Check(CheckReply),
    /// The result of a settle.
    Settle(SettleReply),
    /// What is remembered, if anything.
    Recall(Option<Recalled>),
    /// What a credit did.
    Credit(CreditReply),
    /// What stands on each key after a block.
    Block(Vec<Standing>),
    /// Whether each key was blocked.
    Unblock(Vec<bool>),
    /// The instant of a reset.
    Reset(Time),
    /// What each bucket holds now.
    Reconcile(Vec<Reconciled>),
}

/// A decision to take.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Check {
    /// One per (policy, key), in gate order.
    pub rows: SmallVec<[CheckRow; 1]>,
    /// Whether nothing may move.
    pub peek: bool,
    /// Whether something outside the rows denies already.
    pub veto: bool,
    /// What to remember under a reference if the gate passes.
    pub remember: Option<Box<Remember>>,
}

/// One policy's part of a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckRow {
    /// The key of (namespace, policy, parts).
    pub key: Key,
    /// What keys of this policy have in common, for cells shared when memory is full.
    pub family: u64,
    /// The terms.
    pub limit: Limit,
    /// Units to charge.
    pub held: i64,
    /// The block that an excess starts.
    pub penalty: Option<Penalty>,
    /// Whether the row only watches.
    pub shadow: bool,
    /// Whether a denial by this row's own limit is counted.
    pub count_denied: bool,
    /// The id of the lease, for rows that count leases.
    pub lease: u64,
}

/// What a reference keeps of the check that owns it.
#[derive(Clone, Debug, PartialEq)]
pub struct Remember {
    /// The reference's key.
    pub key: Key,
    /// The check that owns it: its settled-marker's key, which no other check has.
    pub owner: Key,
    /// The unsealed ticket, without its instants.
    pub ticket: Box<[u8]>,
    /// How long it is remembered.
    pub span: Span,
}

/// The answer to a check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckReply {
    /// The instant used.
    pub now: Time,
    /// Whether every enforcing row fits.
    pub passed: bool,
    /// Whether the reference was taken by this check.
    pub remembered: bool,
    /// One answer per row, in order.
    pub rows: SmallVec<[RowReply; 1]>,
}

/// How one row was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is room.
    Fits,
    /// A block stands.
    Blocked,
    /// More was asked than could ever fit.
    TooCostly,
    /// There is no room now.
    OverLimit,
    /// The store could not be asked, and the row denies then; no store says so itself.
    Unavailable,
}

/// One row's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct RowReply {
    /// How the row was judged.
    pub verdict: Verdict,
    /// The instant of its charge.
    pub at: Time,
    /// Units charged.
    pub charged: i64,
    /// The limit shown; absent where nothing is counted.
    pub limit: Option<i64>,
    /// What is free after the charge; negative is debt.
    pub free: i64,
    /// When the same check would fit; absent if it fits, forever if never.
    pub fits_at: Option<Time>,
    /// When the full quota is back and no block stands.
    pub full_at: Time,
    /// The block that stands.
    pub block: Option<Box<Standing>>,
    /// Whether this check started it.
    pub started: bool,
    /// Whether the row was counted in a cell shared with other keys.
    pub shared: bool,
}

/// A block that stands on a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The first free instant.
    pub until: Time,
    /// What started it.
    pub origin: Origin,
    /// What is told.
    pub note: Note,
    /// Whether the batch moved the end.
    pub changed: bool,
}

/// A key to block.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockRow {
    /// The key.
    pub key: Key,
    /// The block.
    pub act: Act,
    /// What is remembered of offences before; only for a block that is told again.
    pub past: Option<Past>,
}

/// Offences that were counted before. With an act of no length they are all there is to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// How many escalating acts are remembered, at least.
    pub level: u32,
    /// How long after the block's end, or after now if it ended.
    pub forget: Span,
}

/// An upstream's view of one bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReconcileRow {
    /// The key.
    pub key: Key,
    /// The terms in force.
    pub terms: BucketTerms,
    /// Tokens the upstream saw.
    pub available: i64,
    /// When it saw them.
    pub observed_at: Time,
}

/// What a bucket holds after the upstream's view was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconciled {
    /// Tokens before.
    pub before: i64,
    /// Tokens after.
    pub after: i64,
}

impl BlockRow {
    /// A new block, with no past but what the store knows.
    pub const fn new(key: Key, act: Act) -> Self {
        Self { key, act, past: None }
    }
}

impl Batch {
    /// Calls `visit` with every key the batch may touch.
    #[inline]
    pub fn each_key(&self, mut visit: impl FnMut(Key)) {
        match self {
            Self::Check(check) => {
                check.rows.iter().for_each(|row| visit(row.key));
                check.remember.iter().for_each(|remember| visit(remember.key));
            }
            Self::Settle(settle) => {
                visit(settle.mark);
                settle.rows.iter().for_each(|row| visit(row.key));
                settle.reference.iter().for_each(|told| visit(told.key));
            }
            Self::Recall(key) => visit(*key),
            Self::Credit(credit) => {
                visit(credit.reference);
                credit.rows.iter().for_each(|row| visit(row.key));
            }
            Self::Block(rows) => rows.iter().for_each(|row| visit(row.key)),
            Self::Unblock(keys) | Self::Reset(keys) => keys.iter().for_each(|key| visit(*key)),
            Self::Reconcile(rows) => rows.iter().for_each(|row| visit(row.key)),
        }
    }
}
