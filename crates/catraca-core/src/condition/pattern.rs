//! The regular expressions of `matches`, compiled when the catalog is read.
//!
//! The CEL library would compile a pattern at every call, so its own `matches` is left out of the
//! build and replaced by this one.

use std::fmt;
use std::sync::Arc;

use cel::common::types::CelString;
use cel::{Context, DeclarationError, FunctionContext};
use regex::{Regex, RegexBuilder};

/// The longest pattern of `matches`, in bytes.
pub const PATTERN_MAX: usize = 256;

/// Limits of the compiled size in bytes, each with the work of matching one byte in the worst case.
/// The slowest engine of the regex crate visits every state of the pattern at every byte, so the
/// compiled size bounds the time.
const SIZES: [(usize, u64); 4] = [(1 << 14, 1), (1 << 17, 4), (1 << 20, 32), (10 << 20, 256)];

/// The compiled patterns of one condition.
#[derive(Clone, Default)]
pub struct Patterns(Arc<Vec<(String, Regex)>>);

impl Patterns {
    /// Compiles a pattern; returns its weight: how many times longer than a comparison it may take.
    pub fn compile(&mut self, pattern: &str) -> Result<u64, String> {
        let (regex, weight) = compile(pattern)?;
        Arc::make_mut(&mut self.0).push((pattern.to_owned(), regex));
        Ok(weight)
    }

    /// Adds the function `matches` to a context.
    pub fn add_to(&self, context: &mut Context<'_, '_>) -> Result<(), DeclarationError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let patterns = self.clone();
        context.add_function("matches", move |call: &FunctionContext<'_, '_>| {
            patterns.is_match(call).ok_or_else(|| call.error("it takes a text and a pattern"))
        })
    }

    /// Evaluates `text.matches(pattern)` or `matches(text, pattern)`; `None` if either is not a
    /// text.
    fn is_match(&self, call: &FunctionContext<'_, '_>) -> Option<bool> {
        let mut arguments = call.this.iter().chain(&call.args);
        let text = arguments.next()?.downcast_ref::<CelString<'_>>()?;
        let pattern = arguments.next()?.downcast_ref::<CelString<'_>>()?;
        let (_, regex) = self.0.iter().find(|(source, _)| source == pattern.inner())?;
        Some(regex.is_match(text.inner()))
    }
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(source, _)| source)).finish()
    }
}

/// Compiles with the smallest size limit that is enough, to find the pattern's weight.
fn compile(pattern: &str) -> Result<(Regex, u64), String> {
    let mut why = String::new();
    for (size, weight) in SIZES {
        match RegexBuilder::new(pattern).size_limit(size).build() {
            Ok(regex) => return Ok((regex, weight)),
            Err(error) => why = error.to_string(),
        }
    }
    let why = why.lines().last().unwrap_or_default();
    Err(format!("the pattern of `matches` cannot be used: {why}"))
}
