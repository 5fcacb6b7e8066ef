//! Refusals: errors in the input of a call, with the cause and how to fix it.
//!
//! A refused call changes no state and is not admitted. A denial by a policy is not a refusal.

use std::fmt;

use crate::request::{COST_MAX, REASON_MAX};

/// An error in the input of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The gate does not exist, and the catalog has no default.
    UnknownGate(String),
    /// The policy does not exist.
    UnknownPolicy(String),
    /// A key attribute is missing.
    MissingAttribute {
        /// The policy.
        policy: String,
        /// The attribute, or the alternatives.
        attribute: String,
    },
    /// No tier of the policy matches, and it has no limits of its own.
    NoTier(String),
    /// A value is invalid for its attribute's kind.
    BadAttribute {
        /// The attribute.
        attribute: String,
        /// The cause, without the value.
        why: String,
    },
    /// A value is too long.
    TooLong {
        /// The attribute.
        attribute: String,
        /// Its length.
        bytes: usize,
        /// The longest that is accepted.
        max: usize,
    },
    /// The caller sends a name that is a fact or derived.
    ReservedAttribute {
        /// The name of the fact, or the derived name.
        name: String,
        /// The attribute that it comes from.
        source_attribute: String,
    },
    /// The route chooses its gate by an attribute whose value has none.
    UnmappedGate {
        /// The attribute.
        attribute: String,
    },
    /// A cost outside the bounds.
    BadCost(i64),
    /// A number that is not an HTTP status.
    BadStatus(u16),
    /// The name of a gate, a reference or an event is empty or too long.
    BadName {
        /// The field.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The longest that is accepted.
        max: usize,
    },
    /// A text that cannot be stored.
    BadText {
        /// The field.
        what: String,
    },
    /// The ticket is forged, changed, or from another namespace.
    BadTicket,
    /// The reference does not exist, or has expired.
    UnknownReference,
    /// The reference was stored for another subject.
    OtherSubject,
    /// The attributes that conditions read do not fit in a ticket.
    TicketTooLarge {
        /// Its size.
        bytes: usize,
        /// The largest.
        max: usize,
    },
    /// The policy is not a bucket.
    NotABucket(String),
    /// A reconciliation of no bucket, or of too many.
    BadStateCount {
        /// How many were sent.
        count: usize,
        /// The most that are accepted.
        max: usize,
    },
    /// A level that an upstream reports is outside the bounds of exact amounts.
    BadLevel {
        /// The policy.
        policy: String,
        /// The level.
        available: i64,
    },
    /// An upstream's levels were observed in the future.
    FutureObservation,
    /// A reason is too long.
    LongReason(usize),
    /// A block of length zero.
    ZeroBlockLength,
    /// The server that a client asked refuses the call.
    ByServer {
        /// The server's code; empty if the client itself refused the call.
        code: String,
        /// What is wrong with the call, and how to fix it.
        detail: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownGate(name) => {
                write!(f, "no gate or policy is called `{name}`, and the catalog names no default")
            }
            Self::UnknownPolicy(name) => write!(f, "no policy is called `{name}`"),
            Self::MissingAttribute { policy, attribute } => write!(
                f,
                "policy `{policy}` counts by `{attribute}`, which is missing: send it or set \
                 `on_missing`"
            ),
            Self::NoTier(policy) => write!(
                f,
                "no tier of policy `{policy}` matches, and it has no limit itself: add one, or \
                 `otherwise`"
            ),
            Self::BadAttribute { attribute, why } => write!(f, "attribute `{attribute}`: {why}"),
            Self::TooLong { attribute, bytes, max } => write!(
                f,
                "attribute `{attribute}` has {bytes} bytes, more than {max}: send a shorter \
                 value or a hash"
            ),
            Self::ReservedAttribute { name, source_attribute } => write!(
                f,
                "`{name}` comes from `{source_attribute}` and may not be sent: leave it out"
            ),
            Self::UnmappedGate { attribute } => write!(
                f,
                "the route chooses its gate by `{attribute}`, and has none for this request: add \
                 the value to `map`, or set `absent` or `default`"
            ),
            Self::BadCost(cost) => write!(f, "cost {cost} is not between 0 and {COST_MAX}"),
            Self::BadStatus(status) => write!(
                f,
                "status {status} is not an HTTP status: send one from 100 to 599, or none"
            ),
            Self::BadName { what, bytes, max } => {
                write!(f, "{what} has {bytes} bytes: send 1 to {max}")
            }
            Self::BadText { what } => {
                write!(f, "{what} contains U+0000, which cannot be stored: remove it")
            }
            Self::BadTicket => f.write_str(
                "the ticket cannot be read: send a decision's `ticket` unchanged, in its namespace",
            ),
            Self::UnknownReference => {
                f.write_str("no check is stored under this reference, or it has expired")
            }
            Self::OtherSubject => f.write_str("the reference belongs to another subject"),
            Self::TicketTooLarge { bytes, max } => write!(
                f,
                "the ticket would have {bytes} bytes, more than {max}: send shorter values of \
                 the attributes that ban conditions read"
            ),
            Self::NotABucket(policy) => write!(f, "policy `{policy}` is not a bucket"),
            Self::BadStateCount { count, max } => write!(f, "{count} states: send 1 to {max}"),
            Self::BadLevel { policy, available } => write!(
                f,
                "{available} tokens of `{policy}`: send a level between -{COST_MAX} and {COST_MAX}"
            ),
            Self::FutureObservation => f.write_str(
                "the levels were observed in the future: send an instant that has passed",
            ),
            Self::LongReason(characters) => {
                write!(f, "the reason has {characters} characters: send at most {REASON_MAX}")
            }
            Self::ZeroBlockLength => f.write_str("a block needs a duration above zero"),
            Self::ByServer { detail, .. } => f.write_str(detail),
        }
    }
}

impl std::error::Error for Refusal {}

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
            Self::UnmappedGate { .. } => "unmapped-gate",
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
            Self::ByServer { .. } => "refused-by-server",
        }
    }
}
