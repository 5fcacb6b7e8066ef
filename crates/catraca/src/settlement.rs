//! The answers of settle, credit, block, buckets and reconcile: plain values in the words of the
//! decision.

use catraca_core::cell::block::Origin;
use catraca_core::credit::NotCredited;
use catraca_core::digest::Key;
use catraca_core::policy::Name;
use catraca_core::time::{Span, Time};

/// What a settle came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// Whether it was applied.
    pub state: Settled,
    /// The instant.
    pub at: Time,
    /// One per row that was charged.
    pub rows: Vec<SettledRow>,
    /// Whether a ban rule reads the body and did not see it, because it is larger than the
    /// catalog's `body_bytes_max`.
    pub body_truncated: bool,
}

/// Whether a settle was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Now.
    Applied,
    /// Before, with this result.
    Again,
    /// Not any more: the ticket's time was over.
    Expired,
}

/// One row of a settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledRow {
    /// The policy.
    pub policy: Name,
    /// What the row paid in all.
    pub charged: i64,
    /// What is free now; negative is debt. Absent where nothing is counted.
    pub balance: Option<i64>,
    /// The end of the block that stands; absent for none or one without end.
    pub blocked_until: Option<Time>,
    /// What this settle started or lengthened.
    pub blocked_by: Option<Origin>,
    /// Why, when a rule says.
    pub reason: Option<Name>,
    /// The status a gateway answers to the request that triggered it.
    pub status: Option<u16>,
    /// Text for that request's caller.
    pub message: Option<String>,
}

/// What a credit came to: for each bucket, the tokens it took; or why none.
pub type Credited = Result<Vec<(Name, i64)>, NotCredited>;

/// A key that an operator has blocked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedKey {
    /// The key of (namespace, policy, parts).
    pub key: Key,
    /// Who, as may be shown.
    pub parts: Vec<(String, String)>,
    /// The first free instant; forever is [`Time::FOREVER`].
    pub until: Time,
    /// What holds it: the later end's origin.
    pub origin: Origin,
    /// Whether this act moved the end.
    pub changed: bool,
}

/// What a bucket holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketState {
    /// The policy.
    pub policy: Name,
    /// Its capacity.
    pub size: i64,
    /// Whole tokens; negative is debt.
    pub balance: i64,
    /// Tokens gained per period, as the catalog reduces them.
    pub refill_tokens: i64,
    /// The period of the refill.
    pub refill_period: Span,
    /// Until it is full and no block stands; absent if never.
    pub reset_after: Option<Span>,
    /// Until one token is there and no block stands; absent if it is there, or never.
    pub retry_after: Option<Span>,
    /// The end of the block that stands.
    pub blocked_until: Option<Time>,
}

/// How an upstream's view changed a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The policy.
    pub policy: Name,
    /// Tokens before.
    pub before: i64,
    /// Tokens after.
    pub after: i64,
}

impl Settled {
    /// The word used on every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "settled",
            Self::Again => "again",
            Self::Expired => "expired",
        }
    }
}
