//! Evaluates all conditions of one settle, within one bound on the work of all of them.
//!
//! Work is estimated before a condition runs, from what it reads and how large that is, so that the
//! same outcome always gives the same verdicts. Must not read a clock.

use super::cost::{LOOPED_VALUES_MAX, Size, WORK_MAX};
use super::input::Inputs;
use super::shape::Shape;
use super::{Condition, Verdict};
use crate::outcome::Outcome;

/// Evaluates the conditions of one settle.
pub struct Judge<'a> {
    inputs: Inputs<'a>,
    work_left: u64,
    reads_body: bool,
}

impl<'a> Judge<'a> {
    /// Evaluates conditions on an outcome and a ticket's attributes. A body of more than
    /// `body_bytes_max` bytes is null to them.
    pub fn new(
        outcome: &'a Outcome,
        attributes: &'a [(String, String)],
        body_bytes_max: usize,
    ) -> Self {
        let inputs = Inputs::new(outcome, attributes, body_bytes_max);
        Self { inputs, work_left: WORK_MAX, reads_body: false }
    }

    /// Evaluates a condition. One whose work is more than what is left of the bound fails.
    pub fn verdict(&mut self, condition: &Condition) -> Verdict {
        let shape = &condition.shape;
        self.reads_body |= shape.reads.body;
        if shape.loops && self.inputs.body_values() > LOOPED_VALUES_MAX {
            return Verdict::Failed;
        }
        match self.work_left.checked_sub(self.work(shape)) {
            Some(left) => self.work_left = left,
            None => return Verdict::Failed,
        }
        condition.evaluate(&self.inputs)
    }

    /// Whether a condition reads the body and did not see it because it is too large.
    pub fn body_truncated(&self) -> bool {
        self.reads_body && self.inputs.body_bytes().is_none()
    }

    #[cfg(test)]
    pub(super) fn has_converted_body(&self) -> bool {
        self.inputs.has_converted_body()
    }

    fn work(&self, shape: &Shape) -> u64 {
        let inputs = &self.inputs;
        let body = if shape.reads.body { inputs.body_bytes().unwrap_or(0) } else { 0 };
        let headers = if shape.reads.headers { inputs.header_bytes() } else { 0 };
        let subject = if shape.reads.subject { inputs.subject_bytes() } else { 0 };
        let values = if shape.loops { inputs.body_values() + inputs.header_count() } else { 0 };
        shape.cost.work(Size {
            body_bytes: body as u64,
            text_bytes: (headers + subject) as u64,
            values: values as u64,
        })
    }
}
