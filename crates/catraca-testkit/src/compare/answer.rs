//! The answer to any operation, in one shape for both sides of a comparison.
//!
//! It must hold every figure that is promised, so that two sides that differ anywhere cannot look the same.

use crate::oracle::answer::{Credited, Decision, Refusal, Settled};

/// What an operation answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A check or a peek.
    Decided(Decision),
    /// A settle.
    Settled(Settled),
    /// A credit.
    Credited(Credited),
    /// A release: whether a block stood.
    Released(bool),
    /// Anything that answers nothing.
    Done,
    /// The call was refused.
    Refused(Refusal),
}
