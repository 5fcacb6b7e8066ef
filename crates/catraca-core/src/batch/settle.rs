//! Batches that follow a check: settles, credits, and the stored references they read.

use std::sync::Arc;

use smallvec::SmallVec;

use super::RowCounter;
use crate::algorithm::SharedBuckets;
use crate::cell::Block;
use crate::cell::block::{BlockProposal, Origin};
use crate::digest::Key;
use crate::limit::{BucketTerms, Limit, Penalty};
use crate::policy::OnFailure;
use crate::price::Price;
use crate::rate::{Percent, Rate};
use crate::time::{Span, Time};

/// A settle: the held amounts of one ticket become real costs.
#[derive(Clone, Debug, PartialEq)]
pub struct SettleBatch {
    /// The key of the settled-marker.
    pub marker: Key,
    /// When the ticket expires; the marker is stored until then.
    pub expires: Time,
    /// One per charged row of the ticket whose policy still exists.
    pub rows: Vec<SettleRow>,
    /// The reference whose settled status is stored, if the check had one.
    pub reference: Option<Box<ReferenceUpdate>>,
}

/// The settled status to store in a reference.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceUpdate {
    /// The key of the reference.
    pub key: Key,
    /// The owner that the reference must have. A reference that expired and was taken by another
    /// check has another owner.
    pub owner: Key,
    /// The status of the outcome.
    pub status: Option<u16>,
}

/// One row of a ticket to settle.
#[derive(Clone, Debug, PartialEq)]
pub struct SettleRow {
    /// The index of the row in its ticket; returned in the reply.
    pub ticket_index: u8,
    /// The current key of the row.
    pub key: Key,
    /// The tier whose own counter the check charged, as in [`CheckRow`](super::CheckRow).
    pub tier_counter: Option<u32>,
    /// The buckets of the other tiers that share the counter.
    pub shared: Option<Arc<SharedBuckets>>,
    /// The same for all keys of a policy. Adjacent rows of one family are banned together.
    pub family: u64,
    /// The terms of the ticket's tier in the active catalog.
    pub limit: Limit,
    /// Units charged at the check.
    pub held: i64,
    /// The row's instant at the check: a refund to a window finds its entry by it.
    pub at: Time,
    /// The real cost: units, or everything that is free.
    pub price: Price,
    /// Whether the balance may become negative.
    pub debt: bool,
    /// The block that starts if the extra charge exceeds what is free.
    pub penalty: Option<Penalty>,
    /// The length of the block that the upstream's `Retry-After` asks for.
    pub upstream: Option<Span>,
    /// Whether blocks started by this row are shadow blocks.
    pub shadow: bool,
    /// The lease to end; used by in-flight rows only.
    pub lease: u64,
    /// What the row does if the store has no room for a new counter.
    pub on_full: OnFailure,
    /// The ban rules whose condition is true.
    pub bans: SmallVec<[BanRow; 1]>,
    /// The watched ratio, if the status of the outcome counts in it.
    pub watch: Option<Box<WatchRow>>,
}

impl SettleRow {
    /// A row that charges one unit of `limit` for a check that held nothing at `at`. Rows that
    /// differ are written as `SettleRow { debt: true, ..SettleRow::new(key, limit, at) }`.
    pub fn new(key: Key, limit: Limit, at: Time) -> SettleRow {
        SettleRow {
            ticket_index: 0,
            key,
            tier_counter: None,
            shared: None,
            family: 0,
            limit,
            held: 0,
            at,
            price: Price::Units(1),
            debt: false,
            penalty: None,
            upstream: None,
            shadow: false,
            lease: 0,
            on_full: OnFailure::Local,
            bans: SmallVec::new(),
            watch: None,
        }
    }

    /// The counter of the row.
    pub fn counter(&self) -> RowCounter<'_> {
        RowCounter {
            shared: self.shared.as_deref(),
            ..RowCounter::new(self.key, self.tier_counter, self.family)
        }
    }
}

/// A ban rule whose condition is true.
#[derive(Clone, Debug, PartialEq)]
pub struct BanRow {
    /// The index of the rule in its policy; selects the cell of its strikes.
    pub rule: u8,
    /// Strikes within a span that start the ban; absent if one match bans at once.
    pub after: Option<Rate>,
    /// The block to propose.
    pub proposal: BlockProposal,
}

/// An outcome that counts in a watched ratio, with the terms of the ratio.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchRow {
    /// Whether the outcome also counts in the part, not only in the whole.
    pub in_part: bool,
    /// The span over which outcomes are counted.
    pub per: Span,
    /// The ratio of part to whole above which the key is banned.
    pub above: Percent,
    /// The least number of outcomes from which the ratio is evaluated.
    pub min: i64,
    /// The block to propose.
    pub proposal: BlockProposal,
}

/// The reply to a settle.
#[derive(Clone, Debug, PartialEq)]
pub enum SettleReply {
    /// The settle was applied, now or by an earlier call.
    Settled {
        /// The instant of the batch.
        now: Time,
        /// Whether an earlier settle was applied; then `rows` is its result.
        already_settled: bool,
        /// The result of each row.
        rows: Vec<RowSettlement>,
        /// The blocks that this settle started or extended, as they are afterwards, with the index
        /// of their row in the ticket. Not in the settled-marker: empty for an earlier settle.
        blocks: Vec<(u8, Block)>,
    },
    /// The ticket has expired; nothing changed.
    Expired {
        /// The instant of the batch.
        now: Time,
    },
    /// The store has no room for the settled-marker; nothing changed.
    Full,
}

/// The result of one row.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RowSettlement {
    /// The index of the row in its ticket.
    pub ticket_index: u8,
    /// Units that the row was charged in total, at the check and at the settle.
    pub charged: i64,
    /// Free units after the settle; absent for rows without a capacity.
    pub free: Option<i64>,
    /// The end of the active block after the settle.
    pub blocked_until: Option<Time>,
    /// The origin of the block that this settle started or extended.
    pub started: Option<Origin>,
    /// The index of the ban rule that did it; absent for a watched ratio, an excess or an upstream.
    pub rule: Option<u8>,
}

/// A reference as the store returns it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredReference {
    /// The body of the ticket in plain bytes, without its instants.
    pub ticket: Box<[u8]>,
    /// The instant of each row at the check; absent for a row that was not charged.
    pub instants: Vec<Option<Time>>,
    /// The status of the settle; absent until then, zero for an outcome without a status.
    pub settled: Option<u16>,
    /// The events that were credited already.
    pub credited: Vec<Box<str>>,
}

/// A credit: units to give back to the buckets of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct CreditBatch {
    /// The key of the reference.
    pub reference: Key,
    /// The name of the event. Each is applied once per reference.
    pub event: Arc<str>,
    /// The buckets to credit.
    pub rows: Vec<CreditRow>,
}

/// One bucket to credit.
#[derive(Clone, Debug, PartialEq)]
pub struct CreditRow {
    /// The current key of the bucket.
    pub key: Key,
    /// The terms of the bucket in the active catalog.
    pub terms: BucketTerms,
    /// The buckets of the other tiers that share this one.
    pub shared: Option<Arc<SharedBuckets>>,
    /// Tokens to give back.
    pub amount: i64,
}

/// The reply to a credit.
#[derive(Clone, Debug, PartialEq)]
pub enum CreditReply {
    /// Applied. The tokens that each bucket took, up to its size.
    Applied(Vec<i64>),
    /// This event was credited before; nothing changed.
    Duplicate,
    /// The reference is unknown or has expired; nothing changed.
    Unknown,
}
