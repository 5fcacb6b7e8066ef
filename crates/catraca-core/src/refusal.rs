//! Refusals: errors in the input of a call, with the cause and how to fix it.
//!
//! A refused call changes no state and is not admitted. A denial by a policy is not a refusal.

use thiserror::Error;

use crate::request::REASON_MAX;

/// An error in the input of a call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The gate does not exist, and the catalog has no default.
    #[error("no gate or policy is called `{0}`, and the catalog names no default")]
    UnknownGate(String),
    /// The policy does not exist.
    #[error("no policy is called `{0}`")]
    UnknownPolicy(String),
    /// A key attribute is missing.
    #[error(
        "policy `{policy}` counts by `{attribute}`, which is missing: send it or set `on_missing`"
    )]
    MissingAttribute {
        /// The policy.
        policy: String,
        /// The attribute, or the alternatives.
        attribute: String,
    },
    /// No tier of the policy matches, and it has no limits of its own.
    #[error("no tier of policy `{0}` matches, and it has no limit itself: add one, or `otherwise`")]
    NoTier(String),
    /// A value is invalid for its attribute's kind.
    #[error("attribute `{attribute}`: {why}")]
    BadAttribute {
        /// The attribute.
        attribute: String,
        /// The cause, without the value.
        why: String,
    },
    /// A value is too long.
    #[error(
        "attribute `{attribute}` has {bytes} bytes, more than {max}: send a shorter value or a hash"
    )]
    TooLong {
        /// The attribute.
        attribute: String,
        /// Its length.
        bytes: usize,
        /// The longest that is accepted.
        max: usize,
    },
    /// The caller sends a name that is a fact or derived.
    #[error("`{name}` comes from `{source_attribute}` and may not be sent: leave it out")]
    ReservedAttribute {
        /// The name of the fact, or the derived name.
        name: String,
        /// The attribute that it comes from.
        source_attribute: String,
    },
    /// A cost outside the bounds.
    #[error("cost {0} is not between 0 and {max}", max = crate::request::COST_MAX)]
    BadCost(i64),
    /// A number that is not an HTTP status.
    #[error("status {0} is not an HTTP status: send one from 100 to 599, or none")]
    BadStatus(u16),
    /// The name of a gate, a reference or an event is empty or too long.
    #[error("{what} has {bytes} bytes: send 1 to {max}")]
    BadName {
        /// The field.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The longest that is accepted.
        max: usize,
    },
    /// A text that cannot be stored.
    #[error("{what} contains U+0000, which cannot be stored: remove it")]
    BadText {
        /// The field.
        what: String,
    },
    /// The ticket is forged, changed, or from another namespace.
    #[error("the ticket cannot be read: send a decision's `ticket` unchanged, in its namespace")]
    BadTicket,
    /// The reference does not exist, or has expired.
    #[error("no check is stored under this reference, or it has expired")]
    UnknownReference,
    /// The reference was stored for another subject.
    #[error("the reference belongs to another subject")]
    OtherSubject,
    /// The attributes that conditions read do not fit in a ticket.
    #[error(
        "the ticket would have {bytes} bytes, more than {max}: send shorter values of the \
         attributes that ban conditions read"
    )]
    TicketTooLarge {
        /// Its size.
        bytes: usize,
        /// The largest.
        max: usize,
    },
    /// The policy is not a bucket.
    #[error("policy `{0}` is not a bucket")]
    NotABucket(String),
    /// A reconciliation of no bucket, or of too many.
    #[error("{count} states: send 1 to {max}")]
    BadStateCount {
        /// How many were sent.
        count: usize,
        /// The most that are accepted.
        max: usize,
    },
    /// A level that an upstream reports is outside the bounds of exact amounts.
    #[error(
        "{available} tokens of `{policy}`: send a level between -{max} and {max}",
        max = crate::request::COST_MAX
    )]
    BadLevel {
        /// The policy.
        policy: String,
        /// The level.
        available: i64,
    },
    /// An upstream's levels were observed in the future.
    #[error("the levels were observed in the future: send an instant that has passed")]
    FutureObservation,
    /// A reason is too long.
    #[error("the reason has {0} characters: send at most {max}", max = REASON_MAX)]
    LongReason(usize),
    /// A block of length zero.
    #[error("a block needs a duration above zero")]
    ZeroBlockLength,
}

impl Refusal {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownGate(_) => "unknown-gate",
            Self::UnknownPolicy(_) => "unknown-policy",
            Self::MissingAttribute { .. } => "missing-attribute",
            Self::NoTier(_) => "no-tier",
            Self::BadAttribute { .. } => "bad-attribute",
            Self::TooLong { .. } => "attribute-too-long",
            Self::ReservedAttribute { .. } => "reserved-attribute",
            Self::BadCost(_) => "bad-cost",
            Self::BadStatus(_) => "bad-status",
            Self::BadName { .. } => "bad-name",
            Self::BadText { .. } => "bad-text",
            Self::BadTicket => "bad-ticket",
            Self::UnknownReference => "unknown-reference",
            Self::OtherSubject => "subject-mismatch",
            Self::TicketTooLarge { .. } => "ticket-too-large",
            Self::NotABucket(_) => "not-a-bucket",
            Self::BadStateCount { .. } | Self::BadLevel { .. } => "bad-states",
            Self::FutureObservation => "bad-instant",
            Self::LongReason(_) => "reason-too-long",
            Self::ZeroBlockLength => "duration-required",
        }
    }
}
