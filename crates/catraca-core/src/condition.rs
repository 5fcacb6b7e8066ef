//! Conditions of ban rules: CEL over `status`, `body`, `body_truncated`, `body_invalid`, `headers`
//! and `subject`.
//!
//! Hides the types of the CEL library from the rest of the crate. Conditions and the patterns of
//! their `matches` are compiled when the catalog is read; a [`ConditionEvaluator`] evaluates those
//! of one settle. Without the feature `cel` no condition compiles. Must not fail a request: an
//! error while evaluating is counted, and the condition does not hold.

#[cfg(feature = "cel")]
mod analysis;
mod cost;
#[cfg(feature = "cel")]
mod evaluator;
#[cfg(feature = "cel")]
mod input;
#[cfg(feature = "cel")]
mod pattern;
#[cfg(feature = "cel")]
mod program;
#[cfg(all(test, feature = "cel"))]
mod tests;
#[cfg(not(feature = "cel"))]
mod without_cel;

pub use cost::ConditionCost;
#[cfg(feature = "cel")]
pub use evaluator::ConditionEvaluator;
#[cfg(feature = "cel")]
pub use program::Condition;
#[cfg(not(feature = "cel"))]
pub use without_cel::{DisabledCondition as Condition, DisabledEvaluator as ConditionEvaluator};

/// The result of evaluating a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionResult {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The condition reads a missing field, compares values of different types, or would take too
    /// long on this outcome. It counts as not holding.
    Failed,
}
