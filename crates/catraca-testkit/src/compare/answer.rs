//! The answer to any operation, in one shape for both sides of a comparison.
//!
//! It must hold every figure that is promised, so that two sides that differ anywhere cannot look
//! the same.

use crate::oracle::answer::{Credited, Decision, Drift, Settled, Stands};

/// What an operation answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A check or a peek.
    Decided(Decision),
    /// A settle.
    Settled(Settled),
    /// A credit.
    Credited(Credited),
    /// A block by an operator, for each key.
    Blocked(Vec<Stands>),
    /// An upstream's view, for each bucket.
    Reconciled(Vec<Drift>),
    /// A release: whether a block stood.
    Released(bool),
    /// Anything that answers nothing.
    Done,
    /// The call was refused.
    Refused(Refused),
}

/// Why a call was refused, as far as both sides tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A key attribute is missing.
    MissingAttribute,
    /// No such gate, and no default policy.
    UnknownGate,
    /// No such policy.
    UnknownPolicy,
    /// Anything else, in words.
    Other(String),
}
