//! What comes after a check: its outcome, and what late events give back.
//!
//! Must not mention policies, subjects or anything of the wire.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::cell::block::{Act, Origin};
use crate::digest::Key;
use crate::limit::{BucketTerms, Limit, Penalty};
use crate::price::Price;
use crate::rate::{Percent, Rate};
use crate::time::{Span, Time};

/// Reservations to turn into real costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Settle {
    /// The settled-marker's key.
    pub mark: Key,
    /// When the ticket expires.
    pub expires: Time,
    /// One per row of the ticket that still has a policy.
    pub rows: Vec<SettleRow>,
    /// The reference to tell.
    pub reference: Option<Box<Told>>,
}

/// What a reference is told of the settle of its check.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The reference's key.
    pub key: Key,
    /// The check: another check's reference of the same name has another owner.
    pub owner: Key,
    /// The status it was settled with.
    pub status: Option<u16>,
}

/// One row to settle.
#[derive(Clone, Debug, PartialEq)]
pub struct SettleRow {
    /// The row's place in its ticket.
    pub place: u8,
    /// The key.
    pub key: Key,
    /// What keys of this policy have in common.
    pub family: u64,
    /// The terms in force.
    pub limit: Limit,
    /// Units held at check.
    pub held: i64,
    /// The instant of the check.
    pub at: Time,
    /// The real cost.
    pub price: Price,
    /// Whether free may go below zero.
    pub debt: bool,
    /// The block that crossing the limit starts.
    pub penalty: Option<Penalty>,
    /// The block that the upstream asks for.
    pub upstream: Option<Span>,
    /// Whether the row only watches.
    pub shadow: bool,
    /// The lease to return.
    pub lease: u64,
    /// The ban rules that hold.
    pub bans: SmallVec<[BanRow; 1]>,
    /// The watched ratio, if this outcome counts in it.
    pub watch: Option<Box<WatchRow>>,
}

/// A ban rule that holds.
#[derive(Clone, Debug, PartialEq)]
pub struct BanRow {
    /// The rule's place in its policy: names the cell of its strikes.
    pub rule: u8,
    /// Strikes needed; absent means one is enough.
    pub after: Option<Rate>,
    /// The block to start.
    pub act: Act,
}

/// An outcome that counts in a watched ratio.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchRow {
    /// Whether it is in the part, not only in the whole.
    pub in_part: bool,
    /// The time looked back upon.
    pub per: Span,
    /// The ratio that must be exceeded.
    pub above: Percent,
    /// The least whole that is judged.
    pub min: i64,
    /// The block to start.
    pub act: Act,
}

/// The result of a settle.
#[derive(Clone, Debug, PartialEq)]
pub enum SettleReply {
    /// Applied now, or before with the same result.
    Settled {
        /// The instant used.
        now: Time,
        /// Whether an earlier settle had done it.
        again: bool,
        /// One answer per row.
        rows: Vec<RowSettled>,
    },
    /// The ticket's time is over; nothing changed.
    Expired {
        /// The instant used.
        now: Time,
    },
    /// No room to remember the settle, so it was not done.
    Full,
}

/// One row's result.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RowSettled {
    /// The row's place in its ticket.
    pub place: u8,
    /// What the row paid in all.
    pub charged: i64,
    /// What is free after the settle, where something is counted.
    pub free: Option<i64>,
    /// The end of the block that stands after the settle.
    pub blocked_until: Option<Time>,
    /// What this settle started or lengthened.
    pub started: Option<Origin>,
    /// Which ban rule it was, if one; the watched ratio comes after the rules.
    pub rule: Option<u8>,
}

/// What is remembered of a reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalled {
    /// The unsealed ticket, without its instants.
    pub ticket: Box<[u8]>,
    /// The instant of each row; absent for a row that was not charged.
    pub instants: Vec<Option<Time>>,
    /// The settled status; zero for none.
    pub settled: Option<u16>,
    /// The events that were applied.
    pub credited: Vec<Box<str>>,
}

/// Buckets to give back to.
#[derive(Clone, Debug, PartialEq)]
pub struct Credit {
    /// The reference.
    pub reference: Key,
    /// The event, applied once.
    pub event: Arc<str>,
    /// The buckets.
    pub rows: Vec<CreditRow>,
}

/// One bucket to give back to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CreditRow {
    /// The key.
    pub key: Key,
    /// The terms in force.
    pub terms: BucketTerms,
    /// Tokens to give.
    pub amount: i64,
}

/// What a credit did.
#[derive(Clone, Debug, PartialEq)]
pub enum CreditReply {
    /// Tokens that each bucket took, up to its size.
    Applied(Vec<i64>),
    /// The event was applied before.
    Duplicate,
    /// The reference is not known any more.
    Unknown,
}
