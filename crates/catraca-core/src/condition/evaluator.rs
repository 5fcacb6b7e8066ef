//! Evaluates the conditions of one settle, with an upper bound on their total work.
//!
//! The work is estimated before a condition runs, from the size of its inputs. It is not measured
//! with a clock, so that the same outcome always has the same results.

use super::analysis::ConditionAnalysis;
use super::cost::{InputSize, LOOPED_VALUES_MAX, WORK_MAX};
use super::input::Inputs;
use super::{Condition, ConditionResult};
use crate::outcome::Outcome;

/// Evaluates the conditions of one settle.
pub struct ConditionEvaluator<'a> {
    inputs: Inputs<'a>,
    work_left: u64,
    /// Whether a condition evaluated so far reads the body.
    reads_body: bool,
}

impl<'a> ConditionEvaluator<'a> {
    /// An evaluator for an outcome and a ticket's attributes. Conditions see null instead of a body
    /// of more than `body_bytes_max` bytes.
    pub fn new(
        outcome: &'a Outcome,
        attributes: &'a [(String, String)],
        body_bytes_max: usize,
    ) -> Self {
        let inputs = Inputs::new(outcome, attributes, body_bytes_max);
        Self { inputs, work_left: WORK_MAX, reads_body: false }
    }

    /// Evaluates a condition. It fails if its estimated work exceeds the rest of `WORK_MAX`.
    pub fn evaluate(&mut self, condition: &Condition) -> ConditionResult {
        let analysis = &condition.analysis;
        self.reads_body |= analysis.reads.body;
        if analysis.loops && self.inputs.body_values() > LOOPED_VALUES_MAX {
            return ConditionResult::Failed;
        }
        match self.work_left.checked_sub(self.estimate_work(analysis)) {
            Some(left) => self.work_left = left,
            None => return ConditionResult::Failed,
        }
        condition.evaluate(&self.inputs)
    }

    /// Whether a condition read null instead of the body because the body is too large.
    pub fn body_truncated(&self) -> bool {
        self.reads_body && self.inputs.body_bytes().is_none()
    }

    /// Whether a condition read null instead of the body because the body is not readable as JSON.
    pub fn body_invalid(&self) -> bool {
        self.reads_body && self.inputs.body_invalid()
    }

    #[cfg(test)]
    pub(super) fn has_converted_body(&self) -> bool {
        self.inputs.has_converted_body()
    }

    fn estimate_work(&self, analysis: &ConditionAnalysis) -> u64 {
        let inputs = &self.inputs;
        let body = if analysis.reads.body { inputs.body_bytes().unwrap_or(0) } else { 0 };
        let headers = if analysis.reads.headers { inputs.header_bytes() } else { 0 };
        let subject = if analysis.reads.subject { inputs.subject_bytes() } else { 0 };
        let values = if analysis.loops { inputs.body_values() + inputs.header_count() } else { 0 };
        analysis.cost.work(InputSize {
            body_bytes: body as u64,
            text_bytes: (headers + subject) as u64,
            values: values as u64,
        })
    }
}
