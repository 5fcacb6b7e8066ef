//! The types of conditions in a build without CEL, in which no condition exists.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{ConditionCost, ConditionResult};
use crate::outcome::Outcome;

/// A condition; without the feature `cel` there is none.
#[derive(Clone, Debug)]
pub struct DisabledCondition(Infallible);

impl DisabledCondition {
    /// Compiles nothing; the catalog's reader reports the missing feature before.
    pub fn compile(_source: &str) -> Result<Self, String> {
        Err("conditions need the feature `cel`".to_owned())
    }

    /// The subject's attributes that the condition reads.
    pub fn attributes(&self) -> &[Arc<str>] {
        match self.0 {}
    }

    /// The attributes whose value the condition reads.
    pub fn values(&self) -> &[Arc<str>] {
        match self.0 {}
    }

    /// Whether the condition reads the body.
    pub fn reads_body(&self) -> bool {
        match self.0 {}
    }

    /// Whether the condition reads headers.
    pub fn reads_headers(&self) -> bool {
        match self.0 {}
    }

    /// The condition as written.
    pub fn source(&self) -> &str {
        match self.0 {}
    }

    pub(super) fn cost(&self) -> ConditionCost {
        match self.0 {}
    }
}

/// Evaluates the conditions of one settle: none.
pub struct DisabledEvaluator<'a>(PhantomData<&'a Outcome>);

impl<'a> DisabledEvaluator<'a> {
    /// An evaluator for an outcome.
    pub fn new(_outcome: &'a Outcome, _attributes: &'a [(String, String)], _max: usize) -> Self {
        Self(PhantomData)
    }

    /// Evaluates a condition.
    pub fn evaluate(&mut self, condition: &DisabledCondition) -> ConditionResult {
        match condition.0 {}
    }

    /// Whether a condition read null instead of a body that is too large.
    pub fn body_truncated(&self) -> bool {
        false
    }

    /// Whether a condition read null instead of a body that is not readable as JSON.
    pub fn body_invalid(&self) -> bool {
        false
    }
}
