//! How the work of conditions grows with what they read.
//!
//! One unit of work is about a nanosecond. Must not look at an outcome.

use super::Condition;

/// The work of all conditions of one settle together.
pub const WORK_MAX: u64 = 64 << 20;

/// The largest body that a loop goes through, in values.
pub const LOOPED_VALUES_MAX: usize = 4_096;

/// The work of one part of an expression at one value of a loop, whatever it compares.
const STEP_WORK: u64 = 64;

/// The work of reading one byte of JSON and converting it for conditions.
const CONVERT_WORK: u64 = 8;

/// The coefficients of an estimate, known when the catalog is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Calls that may go through a whole value; a pattern counts as its weight.
    pub scans: u64,
    /// Calls inside a loop that may go through the whole body at every value.
    pub repeated: u64,
    /// Calls inside a loop that may go through headers and attributes at every value.
    pub repeated_texts: u64,
    /// Parts of the expression that are evaluated at every value of a loop.
    pub steps: u64,
}

/// How much there is for a condition to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    /// Bytes of the body.
    pub body_bytes: u64,
    /// Bytes of headers and attributes.
    pub text_bytes: u64,
    /// Values that a loop may go through.
    pub values: u64,
}

impl Cost {
    /// The cost of several conditions together.
    pub fn of<'c>(conditions: impl IntoIterator<Item = &'c Condition>) -> Self {
        conditions.into_iter().fold(Self::default(), |sum, condition| {
            let cost = condition.shape.cost;
            Self {
                scans: sum.scans.saturating_add(cost.scans),
                repeated: sum.repeated.saturating_add(cost.repeated),
                repeated_texts: sum.repeated_texts.saturating_add(cost.repeated_texts),
                steps: sum.steps.saturating_add(cost.steps),
            }
        })
    }

    /// At least as much as either.
    pub fn max(self, other: Self) -> Self {
        Self {
            scans: self.scans.max(other.scans),
            repeated: self.repeated.max(other.repeated),
            repeated_texts: self.repeated_texts.max(other.repeated_texts),
            steps: self.steps.max(other.steps),
        }
    }

    /// The work on an outcome of this size.
    pub fn work(self, size: Size) -> u64 {
        let bytes = size.body_bytes.saturating_add(size.text_bytes);
        let scans = self.scans.saturating_mul(bytes);
        let body = self.repeated.saturating_mul(bytes);
        let texts = self.repeated_texts.saturating_mul(size.text_bytes);
        let steps = self.steps.saturating_mul(STEP_WORK);
        let each_value = body.saturating_add(texts).saturating_add(steps);
        scans.saturating_add(each_value.saturating_mul(size.values))
    }

    /// The most work that a settle of this many bytes should be, reading and conversion included.
    pub fn estimate(self, bytes: usize) -> u64 {
        // Every value takes a byte and a comma at least.
        let values = (bytes / 2).min(LOOPED_VALUES_MAX) as u64;
        let bytes = bytes as u64;
        // How the bytes divide into body and headers is unknown before parsing. Counting them all
        // as text gives the larger estimate.
        let judging = self.work(Size { body_bytes: 0, text_bytes: bytes, values }).min(WORK_MAX);
        judging.saturating_add(CONVERT_WORK.saturating_mul(bytes))
    }
}
