//! Results of settle, credit, block, buckets and reconcile.
//!
//! ```
//! # #[cfg(feature = "settle")] {
//! use std::time::Duration;
//!
//! use catraca::settlement::SettleState;
//! use catraca::{Catalog, Check, Engine, Outcome, Settle, Subject};
//!
//! let catalog = Catalog::parse(r#"
//!     [policy.lookup]
//!     by     = ["payer"]
//!     bucket = { size = 100, refill = "1 per 1m" }
//!     cost   = { "404" = 20, default = 0 }
//! "#)?;
//! let engine = Engine::new(catalog);
//! let decision = engine.check(&Check::new("lookup", [("payer", "a")]))?;
//! let ticket = decision.ticket.expect("the cost depends on the outcome");
//! let outcome = Outcome::status(404);
//! let settled = engine.settle(&Settle::ticket(&ticket, &outcome))?;
//! assert_eq!((settled.state, settled.rows[0].charged), (SettleState::Applied, 20));
//! let again = engine.settle(&Settle::ticket(&ticket, &outcome))?;
//! assert_eq!(again.state, SettleState::Again);
//!
//! let bucket = engine.bucket_state("default", "lookup", &Subject::from([("payer", "a")]))?;
//! assert_eq!((bucket.balance, bucket.refill_period()), (80, Duration::from_secs(60)));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::time::{Duration, SystemTime};

use catraca_core::batch::BlockReply;
use catraca_core::cell::block::Origin;
use catraca_core::credit_plan::CreditRejection;
use catraca_core::policy::Name;
use catraca_core::rate::Rate;
use catraca_core::refusal::Refusal;
use catraca_core::time::{Span, Time};

use crate::event::SubjectKey;

/// The result of a settle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settlement {
    /// Whether the settle was applied, repeated or too late.
    pub state: SettleState,
    /// The instant, by the store's clock.
    #[doc(hidden)]
    pub at: Time,
    /// One row per charged row of the ticket.
    pub rows: Vec<SettledRow>,
    /// Whether a ban rule reads the body and got none, because the body is larger than the
    /// catalog's `body_bytes_max`.
    pub body_truncated: bool,
    /// Whether a ban rule reads the body and got none, because the body is not readable JSON.
    pub body_invalid: bool,
}

/// Whether a settle was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleState {
    /// Applied by this call.
    Applied,
    /// Applied by an earlier call, which had this result.
    Again,
    /// Not applied: the ticket had expired.
    Expired,
}

/// One row of a settle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettledRow {
    /// The policy.
    pub policy: Name,
    /// The attribute that this row counts, for a policy with `each`.
    pub attribute: Option<Name>,
    /// The units that the row has paid in total.
    pub charged: i64,
    /// The free units after the settle; negative is debt. Absent for a policy without a limit.
    pub balance: Option<i64>,
    /// The end of the active block; absent if there is none, or if it has no end.
    #[doc(hidden)]
    pub blocked_until: Option<Time>,
    /// The origin of the block that this settle started or extended; absent in shadow mode, where
    /// nothing is blocked.
    pub blocked_by: Option<Origin>,
    /// The reason that the ban rule gives.
    pub reason: Option<Name>,
    /// The HTTP status that a gateway returns to the request that triggered the ban.
    pub status: Option<u16>,
    /// The message for the caller of that request.
    pub message: Option<String>,
}

/// The tokens that each bucket received, by policy; or why the credit was rejected.
pub type CreditResult = Result<Vec<(Name, i64)>, CreditRejection>;

/// The keys that an operator blocked, each with its block. An earlier block that ends later stays
/// as it was.
pub type BlockResult = Vec<(SubjectKey, BlockReply)>;

/// The level of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketState {
    /// The policy.
    pub policy: Name,
    /// The capacity of the bucket.
    pub size: i64,
    /// Whole tokens; negative is debt.
    pub balance: i64,
    /// The refill as the catalog writes it.
    pub refill: Rate,
    /// The time until the bucket is full and no block is active; absent if never.
    #[doc(hidden)]
    pub reset_after: Option<Span>,
    /// The time until one token is available and no block is active; absent if that is now, or
    /// never.
    #[doc(hidden)]
    pub retry_after: Option<Span>,
    /// The end of the active block; absent if there is none, or if it has no end.
    #[doc(hidden)]
    pub blocked_until: Option<Time>,
}

/// What a reconcile did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconciliation {
    /// How each bucket changed.
    pub drifts: Vec<Drift>,
    /// The states that were left out.
    pub skipped: Vec<SkippedState>,
}

/// A state of the upstream for which this engine has no bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedState {
    /// The policy, as the upstream names it.
    pub policy: String,
    /// Why there is no bucket: the policy is unknown, has no bucket, or does not apply to the
    /// subject.
    pub why: Refusal,
}

/// How a reconcile changed one bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drift {
    /// The policy.
    pub policy: Name,
    /// Tokens before.
    pub before: i64,
    /// Tokens after.
    pub after: i64,
}

impl SettleState {
    /// The name of the state on every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "settled",
            Self::Again => "again",
            Self::Expired => "expired",
        }
    }
}

impl Settlement {
    /// The instant of the settle, by the store's clock.
    pub fn settled_at(&self) -> SystemTime {
        self.at.into()
    }
}

impl SettledRow {
    /// The end of the active block; absent if there is none, or if it has no end.
    pub fn blocked_until(&self) -> Option<SystemTime> {
        self.blocked_until.map(SystemTime::from)
    }
}

impl BucketState {
    /// The period of the refill, as the catalog writes it.
    pub fn refill_period(&self) -> Duration {
        self.refill.per.into()
    }

    /// How long until the bucket is full and no block is active; absent if never.
    pub fn reset_after(&self) -> Option<Duration> {
        self.reset_after.map(Duration::from)
    }

    /// How long until one token is available and no block is active; absent if that is now, or
    /// never.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.map(Duration::from)
    }

    /// The end of the active block; absent if there is none, or if it has no end.
    pub fn blocked_until(&self) -> Option<SystemTime> {
        self.blocked_until.map(SystemTime::from)
    }
}
