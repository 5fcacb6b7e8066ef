//! Refusals: what is wrong with a call, in words that name what, where and how to fix it.
//!
//! Always the input's fault, so it changes nothing and never opens the gate. A denial is not a
//! refusal.

use thiserror::Error;

use crate::request::REASON_MAX;

/// What is wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No such gate, and the catalog has no default.
    #[error("no gate or policy is called `{0}`, and the catalog names no default")]
    UnknownGate(String),
    /// No such policy.
    #[error("no policy is called `{0}`")]
    UnknownPolicy(String),
    /// A key attribute is missing.
    #[error(
        "policy `{policy}` counts by `{attribute}`, which is missing: send it or set `on_missing`"
    )]
    Missing {
        /// The policy.
        policy: String,
        /// The attribute, or the alternatives.
        attribute: String,
    },
    /// No tier of the policy matches, and it has no limits of its own.
    #[error(
        "no tier of policy `{0}` fits and it has no limit of its own: give it one, or `otherwise`"
    )]
    NoTier(String),
    /// A value cannot be read as its attribute's kind.
    #[error("attribute `{attribute}`: {why}")]
    BadAttribute {
        /// The attribute.
        attribute: String,
        /// What is wrong, without the value.
        why: String,
    },
    /// A value is longer than any key may be.
    #[error(
        "attribute `{attribute}` has {bytes} bytes of at most {max}: send less, or a hash of it"
    )]
    TooLong {
        /// The attribute.
        attribute: String,
        /// Its length.
        bytes: usize,
        /// The most that is taken.
        max: usize,
    },
    /// The caller states what only we may know.
    #[error("`{name}` is known from `{source_attribute}` and may not be sent: leave it out")]
    NotYours {
        /// The fact's or derived name.
        name: String,
        /// Where it comes from.
        source_attribute: String,
    },
    /// A cost outside the bounds.
    #[error("cost {0} is not between 0 and {max}", max = crate::request::COST_MAX)]
    BadCost(i64),
    /// A status that no answer can have.
    #[error("status {0} is no HTTP status: send one from 100 to 599, or none")]
    BadStatus(u16),
    /// A gate's or reference's name is empty or too long.
    #[error("{what} has {bytes} bytes and takes 1 to {max}")]
    BadName {
        /// What it names.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The most that is taken.
        max: usize,
    },
    /// A text that the records could not hold.
    #[error("{what} contains U+0000, which cannot be stored: remove it")]
    BadText {
        /// What it is.
        what: String,
    },
    /// The ticket is not one of ours, or not for this namespace.
    #[error("the ticket cannot be read: send a decision's `ticket` unchanged, in its namespace")]
    BadTicket,
    /// The reference is not known.
    #[error("no check is remembered under this reference")]
    UnknownReference,
    /// The reference belongs to somebody else.
    #[error("the reference belongs to another subject")]
    OtherSubject,
    /// What the conditions read does not fit in a ticket.
    #[error("the ticket would have {bytes} bytes of at most {max}: conditions read too much")]
    TicketTooLarge {
        /// Its size.
        bytes: usize,
        /// The largest.
        max: usize,
    },
    /// The policy is not a bucket.
    #[error("policy `{0}` is not a bucket")]
    NotABucket(String),
    /// A reason is longer than anybody would read.
    #[error("the reason has {0} characters and takes at most {max}", max = REASON_MAX)]
    LongReason(usize),
    /// A length of time that makes no sense here.
    #[error("a block needs a length above zero")]
    NoLength,
}

impl Refusal {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownGate(_) => "unknown-gate",
            Self::UnknownPolicy(_) => "unknown-policy",
            Self::Missing { .. } => "missing-attribute",
            Self::NoTier(_) => "no-tier",
            Self::BadAttribute { .. } => "bad-attribute",
            Self::TooLong { .. } => "attribute-too-long",
            Self::NotYours { .. } => "reserved-attribute",
            Self::BadCost(_) => "bad-cost",
            Self::BadStatus(_) => "bad-status",
            Self::BadName { .. } => "bad-name",
            Self::BadText { .. } => "bad-text",
            Self::BadTicket => "bad-ticket",
            Self::UnknownReference => "unknown-reference",
            Self::OtherSubject => "subject-mismatch",
            Self::TicketTooLarge { .. } => "ticket-too-large",
            Self::NotABucket(_) => "not-a-bucket",
            Self::LongReason(_) => "reason-too-long",
            Self::NoLength => "duration-required",
        }
    }
}
