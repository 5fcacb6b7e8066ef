//! Conditions of ban rules: CEL over `status`, `body`, `body_truncated`, `body_invalid`, `headers`
//! and `subject`.
//!
//! Hides the types of the CEL library from the rest of the crate. Conditions and the patterns of
//! their `matches` are compiled when the catalog is read; a [`ConditionEvaluator`] evaluates those
//! of one settle. Must not fail a request: an error while evaluating is counted, and the condition
//! does not hold.

mod analysis;
mod cost;
mod evaluator;
mod input;
mod pattern;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::common::types::CelBool;
use cel::{Context, Env, Program, Value};

use analysis::ConditionAnalysis;
use input::Inputs;

pub use cost::ConditionCost;
pub use evaluator::ConditionEvaluator;

/// The functions and operators of all conditions. Shared, because building them takes longer than
/// evaluating most conditions.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A compiled condition.
#[derive(Clone)]
pub struct Condition {
    source: Arc<str>,
    program: Arc<Program>,
    analysis: Arc<ConditionAnalysis>,
}

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

impl Condition {
    /// Compiles a condition; the error describes the mistake in it.
    pub fn compile(source: &str) -> Result<Self, String> {
        let program = Program::compile(source).map_err(|error| first_line(&error.to_string()))?;
        let analysis = Arc::new(analysis::analyse(program.expression())?);
        Ok(Self { source: source.into(), program: Arc::new(program), analysis })
    }

    /// The subject's attributes that the condition reads.
    pub fn attributes(&self) -> &[Arc<str>] {
        &self.analysis.attributes
    }

    /// The attributes whose value the condition reads; `has(subject.name)` alone does not count.
    pub fn values(&self) -> &[Arc<str>] {
        &self.analysis.values
    }

    /// The condition as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> ConditionResult {
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.set_variable_resolver(inputs);
        if self.analysis.patterns.add_to(&mut context).is_err() {
            return ConditionResult::Failed;
        }
        // Resolved by reference: the expression may be `body` by mistake, and copying a large body
        // only to find that it is not a boolean would be slow.
        let value = Value::resolve_val(self.program.expression(), &context);
        let flag = value.as_ref().ok().and_then(|value| value.downcast_ref::<CelBool>());
        match flag.map(|flag| *flag.inner()) {
            Some(true) => ConditionResult::True,
            Some(false) => ConditionResult::False,
            None => ConditionResult::Failed,
        }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condition({:?})", self.source)
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
