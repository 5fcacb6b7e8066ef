//! One mutant, as cargo-mutants lists it.

use anyhow::{Context, Result};
use serde_json::Value;

/// A change of the text of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mutant {
    pub(super) name: String,
    /// Relative to the root of the checkout.
    pub(super) file: String,
    pub(super) function: Span,
    /// The text that is replaced.
    pub(super) span: Span,
    pub(super) replacement: String,
}

/// From the first position to before the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: Position,
    pub(super) end: Position,
}

/// Line and column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// Reads `cargo mutants --list --json`. A switch cannot choose between two constants or two opaque
/// types, so mutants outside functions and in functions that return `impl Trait` are left out.
pub(super) fn parse_list(json: &str) -> Result<Vec<Mutant>> {
    let list: Vec<Value> = serde_json::from_str(json)?;
    let is_switchable = |mutant: &&Value| {
        let returns = mutant["function"]["return_type"].as_str();
        returns.is_some_and(|returns| !returns.contains("impl "))
    };
    list.iter().filter(is_switchable).map(parse_mutant).collect()
}

fn parse_mutant(mutant: &Value) -> Result<Mutant> {
    let string = |key: &str| {
        let text = mutant[key].as_str().with_context(|| format!("a mutant without `{key}`"))?;
        Ok::<_, anyhow::Error>(text.to_owned())
    };
    Ok(Mutant {
        name: string("name")?,
        file: string("file")?,
        function: parse_span(&mutant["function"]["span"])?,
        span: parse_span(&mutant["span"])?,
        replacement: string("replacement")?,
    })
}

fn parse_span(span: &Value) -> Result<Span> {
    Ok(Span { start: parse_position(&span["start"])?, end: parse_position(&span["end"])? })
}

fn parse_position(position: &Value) -> Result<Position> {
    let number = |key: &str| {
        let number = position[key].as_u64().with_context(|| format!("a position without {key}"))?;
        Ok::<_, anyhow::Error>(usize::try_from(number)?)
    };
    Ok(Position { line: number("line")?, column: number("column")? })
}

impl Mutant {
    /// The name without line and column, which change too often for a document.
    pub(super) fn short_name(&self) -> String {
        let change = self.name.splitn(4, ':').nth(3).unwrap_or_default();
        format!("{}:{change}", self.file.trim_start_matches("crates/"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(returns: Value) -> Value {
        let span =
            json!({ "start": { "line": 1, "column": 2 }, "end": { "line": 3, "column": 4 } });
        json!({
            "name": "crates/c/a.rs:1:2: replace :: with + in f",
            "file": "crates/c/a.rs",
            "function": { "return_type": returns, "span": span },
            "span": span,
            "replacement": "+",
        })
    }

    #[test]
    fn a_mutant_that_cannot_be_switched_is_left_out() {
        let constant = json!({ "function": null });
        let list = json!([listed(json!("-> i64")), listed(json!("-> impl Fn()")), constant]);
        let mutants = parse_list(&list.to_string()).unwrap();
        assert_eq!(mutants.len(), 1);
        assert_eq!(mutants[0].short_name(), "c/a.rs: replace :: with + in f");
        assert_eq!(mutants[0].span.end, Position { line: 3, column: 4 });
    }
}
