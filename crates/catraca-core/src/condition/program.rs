//! A condition that is compiled from CEL, and its evaluation.

use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::common::types::CelBool;
use cel::{Context, Env, Program, Value};

use super::analysis::{self, ConditionAnalysis};
use super::input::Inputs;
use super::{ConditionCost, ConditionResult};

/// The functions and operators of all conditions. Shared, because building them takes longer than
/// evaluating most conditions.
pub(super) static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A compiled condition.
#[derive(Clone)]
pub struct Condition {
    source: Arc<str>,
    program: Arc<Program>,
    pub(super) analysis: Arc<ConditionAnalysis>,
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

    /// Whether the condition reads the body, or whether it could be read.
    pub fn reads_body(&self) -> bool {
        self.analysis.reads.body
    }

    /// Whether the condition reads headers.
    pub fn reads_headers(&self) -> bool {
        self.analysis.reads.headers
    }

    /// The condition as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How the time to evaluate the condition grows with its inputs.
    pub(super) fn cost(&self) -> ConditionCost {
        self.analysis.cost
    }

    pub(super) fn evaluate(&self, inputs: &Inputs<'_>) -> ConditionResult {
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
