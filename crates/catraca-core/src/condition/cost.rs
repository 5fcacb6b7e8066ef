//! Cost model of conditions: how the time to evaluate them grows with the size of their inputs.
//!
//! The unit of work is about a nanosecond.

use super::Condition;

/// The most work of all conditions of one settle together; about 67 ms.
pub const WORK_MAX: u64 = 64 << 20;

/// The largest body that a loop iterates over, in JSON values.
pub const LOOPED_VALUES_MAX: usize = 4_096;

/// The work of evaluating one node of an expression in one iteration of a loop.
const STEP_WORK: u64 = 64;

/// The work of reading one byte of JSON and converting it for conditions.
const CONVERT_WORK: u64 = 8;

/// The coefficients of the cost model, computed when the catalog is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConditionCost {
    /// Calls that may scan a whole value once; a pattern counts as its weight.
    pub scans: u64,
    /// Calls inside a loop that may scan the whole body in every iteration.
    pub repeated: u64,
    /// Calls inside a loop that may scan headers and attributes in every iteration.
    pub repeated_texts: u64,
    /// Nodes of the expression that are evaluated in every iteration of a loop.
    pub steps: u64,
}

/// The size of a condition's inputs.
#[derive(Clone, Copy, Debug, Default)]
pub struct InputSize {
    /// Bytes of the body.
    pub body_bytes: u64,
    /// Bytes of headers and attributes.
    pub text_bytes: u64,
    /// Values that a loop may iterate over.
    pub values: u64,
}

impl ConditionCost {
    /// The sum of the costs of several conditions.
    pub fn of<'c>(conditions: impl IntoIterator<Item = &'c Condition>) -> Self {
        conditions.into_iter().fold(Self::default(), |sum, condition| {
            let cost = condition.cost();
            Self {
                scans: sum.scans.saturating_add(cost.scans),
                repeated: sum.repeated.saturating_add(cost.repeated),
                repeated_texts: sum.repeated_texts.saturating_add(cost.repeated_texts),
                steps: sum.steps.saturating_add(cost.steps),
            }
        })
    }

    /// The larger of each coefficient: an upper bound of both costs.
    pub fn max(self, other: Self) -> Self {
        Self {
            scans: self.scans.max(other.scans),
            repeated: self.repeated.max(other.repeated),
            repeated_texts: self.repeated_texts.max(other.repeated_texts),
            steps: self.steps.max(other.steps),
        }
    }

    /// The work of evaluating on inputs of this size.
    pub fn work(self, size: InputSize) -> u64 {
        let bytes = size.body_bytes.saturating_add(size.text_bytes);
        let scans = self.scans.saturating_mul(bytes);
        let body = self.repeated.saturating_mul(bytes);
        let texts = self.repeated_texts.saturating_mul(size.text_bytes);
        let steps = self.steps.saturating_mul(STEP_WORK);
        let each_value = body.saturating_add(texts).saturating_add(steps);
        scans.saturating_add(each_value.saturating_mul(size.values))
    }

    /// An upper bound of the work of a settle request of this many bytes, including the parsing and
    /// conversion of its body.
    pub fn estimate(self, bytes: usize) -> u64 {
        // Every JSON value takes at least one byte and a comma.
        let values = (bytes / 2).min(LOOPED_VALUES_MAX) as u64;
        let bytes = bytes as u64;
        // How the bytes divide into body and headers is unknown before parsing. Counting them all
        // as text gives the larger estimate.
        let judging =
            self.work(InputSize { body_bytes: 0, text_bytes: bytes, values }).min(WORK_MAX);
        judging.saturating_add(CONVERT_WORK.saturating_mul(bytes))
    }
}
