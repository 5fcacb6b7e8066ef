//! The answer of an operation, in one type for both sides of a comparison.
//!
//! It holds every figure that the API promises: a figure left out here would never be compared.

use crate::oracle::answer::{CreditAnswer, Decision, Drift, SettleAnswer, StartedBlock};

/// The answer of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum ComparedAnswer {
    /// A check or a peek.
    Decided(Decision),
    /// A check or a peek without room for a counter, with its reason. The oracle always has room.
    Degraded(String),
    /// A settle.
    Settled(SettleAnswer),
    /// A credit.
    Credited(CreditAnswer),
    /// A block by an operator, for each key.
    Blocked(Vec<StartedBlock>),
    /// An upstream's view, for each bucket.
    Reconciled(Vec<Drift>),
    /// An unblock: whether a block was active.
    Released(bool),
    /// An operation without an answer.
    Done,
    /// The call was refused.
    Refused(ComparedRefusal),
}

/// Why a call was refused, as far as both sides distinguish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComparedRefusal {
    /// A key attribute is missing.
    MissingAttribute,
    /// No such gate, and no default policy.
    UnknownGate,
    /// No such policy.
    UnknownPolicy,
    /// Any other reason, as text.
    Other(String),
}
