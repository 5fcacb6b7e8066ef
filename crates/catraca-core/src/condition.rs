//! Conditions: CEL over `status`, `body`, `body_truncated`, `headers` and `subject`.
//!
//! Wraps the expression library so that the rest of the crate never sees its types. A condition is
//! compiled with the catalog, patterns included; a [`Judge`] evaluates all those of one settle.
//! Must not fail a request: whatever goes wrong while evaluating is a `false` that is counted.

mod cost;
mod input;
mod judge;
mod pattern;
mod shape;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::common::types::CelBool;
use cel::{Context, Env, Program, Value};

use input::Inputs;
use shape::Shape;

pub use cost::Cost;
pub use judge::Judge;

/// The functions and operators of every condition; building them takes longer than most conditions.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A compiled condition with its source.
#[derive(Clone)]
pub struct Condition {
    source: Arc<str>,
    program: Arc<Program>,
    shape: Arc<Shape>,
}

/// What evaluating a condition gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It read a missing field, compared unlike things, or would take too long on this outcome;
    /// counts as not holding.
    Failed,
}

impl Condition {
    /// Compiles a condition; the error says what is wrong with it.
    pub fn compile(source: &str) -> Result<Self, String> {
        let program = Program::compile(source).map_err(|error| first_line(&error.to_string()))?;
        let shape = Arc::new(shape::shape(program.expression())?);
        Ok(Self { source: source.into(), program: Arc::new(program), shape })
    }

    /// The subject's attributes that the condition reads.
    pub fn attributes(&self) -> &[Arc<str>] {
        &self.shape.attributes
    }

    /// Those of them whose value it looks at, not only whether they are there.
    pub fn values(&self) -> &[Arc<str>] {
        &self.shape.values
    }

    /// The condition as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Verdict {
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.set_variable_resolver(inputs);
        if self.shape.patterns.add_to(&mut context).is_err() {
            return Verdict::Failed;
        }
        // The value itself and not a copy: a condition may well be `body`, which is no condition.
        let value = Value::resolve_val(self.program.expression(), &context);
        let flag = value.as_ref().ok().and_then(|value| value.downcast_ref::<CelBool>());
        match flag.map(|flag| *flag.inner()) {
            Some(true) => Verdict::True,
            Some(false) => Verdict::False,
            None => Verdict::Failed,
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
