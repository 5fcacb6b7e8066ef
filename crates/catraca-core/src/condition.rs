//! Conditions: CEL over `status`, `body`, `headers` and `subject`.
//!
//! Wraps the expression library so that the rest of the crate never sees its types.
//! Must not fail a request: whatever goes wrong while evaluating is a `false` that is counted.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use cel::objects::Key;
use cel::{Context, Program, Value};

use crate::outcome::Outcome;

/// The names a condition may read.
const VARIABLES: [&str; 4] = ["status", "body", "headers", "subject"];

/// A compiled condition with its source.
#[derive(Clone)]
pub struct Condition {
    source: Arc<str>,
    program: Arc<Program>,
    attributes: Vec<Arc<str>>,
}

/// What evaluating a condition gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It read a missing field or compared unlike things; counts as not holding.
    Failed,
}

impl Condition {
    /// Compiles a condition; the error says what is wrong with it.
    pub fn compile(source: &str) -> Result<Self, String> {
        let program = Program::compile(source).map_err(|error| first_line(&error.to_string()))?;
        if let Some(name) = unknown_name(&program) {
            return Err(format!("`{name}` is not known here"));
        }
        let attributes = attributes_read(source)?;
        Ok(Self { source: source.into(), program: Arc::new(program), attributes })
    }

    /// The subject's attributes that the condition reads.
    pub fn attributes(&self) -> &[Arc<str>] {
        &self.attributes
    }

    /// The condition as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Evaluates the condition on an outcome.
    pub fn holds(&self, outcome: &Outcome, subject: &[(String, String)]) -> Verdict {
        let mut context = Context::default();
        context.add_variable_from_value("status", status_value(outcome.status));
        context.add_variable_from_value("body", value_of(&outcome.body));
        context.add_variable_from_value("headers", text_map(&outcome.headers));
        context.add_variable_from_value("subject", text_map(subject));
        match self.program.execute(&context) {
            Ok(Value::Bool(true)) => Verdict::True,
            Ok(Value::Bool(false)) => Verdict::False,
            Ok(_) | Err(_) => Verdict::Failed,
        }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condition({:?})", self.source)
    }
}

fn unknown_name(program: &Program) -> Option<String> {
    let references = program.references();
    let unknown = references.variables().into_iter().filter(|name| !VARIABLES.contains(name));
    unknown.min().map(str::to_owned)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn status_value(status: Option<u16>) -> Value {
    status.map_or(Value::Null, |status| Value::Int(i64::from(status)))
}

/// Whole numbers become integers, so that `body.reject_id == 5` means the number five and never the
/// text.
fn value_of(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(number) => number_of(number),
        serde_json::Value::String(text) => Value::String(Arc::new(text.clone())),
        serde_json::Value::Array(items) => {
            Value::List(Arc::new(items.iter().map(value_of).collect()))
        }
        serde_json::Value::Object(fields) => {
            let pairs = fields.iter().map(|(name, value)| (key(name), value_of(value)));
            Value::Map(pairs.collect::<HashMap<_, _>>().into())
        }
    }
}

fn number_of(number: &serde_json::Number) -> Value {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(int), _, _) => Value::Int(int),
        (None, Some(unsigned), _) => Value::UInt(unsigned),
        (None, None, Some(float)) => Value::Float(float),
        (None, None, None) => Value::Null,
    }
}

fn text_map(pairs: &[(String, String)]) -> Value {
    let pairs = pairs.iter().map(|(k, v)| (key(k), Value::String(Arc::new(v.clone()))));
    Value::Map(pairs.collect::<HashMap<_, _>>().into())
}

fn key(name: &str) -> Key {
    Key::String(Arc::new(name.to_owned()))
}

/// Finds every `subject.name` and `subject["name"]`: the ticket must carry exactly these.
fn attributes_read(source: &str) -> Result<Vec<Arc<str>>, String> {
    let mut found: Vec<Arc<str>> = Vec::new();
    for (at, _) in source.match_indices("subject") {
        if is_inside_word(source, at) {
            continue;
        }
        let name = attribute_after(&source[at + "subject".len()..])
            .ok_or("read an attribute as `subject.name`, or test it with `has(subject.name)`")?;
        if !found.iter().any(|known| **known == *name) {
            found.push(name.into());
        }
    }
    Ok(found)
}

fn is_inside_word(source: &str, at: usize) -> bool {
    let before = source[..at].chars().next_back();
    let after = source[at + "subject".len()..].chars().next();
    let word = |c: char| c.is_alphanumeric() || c == '_';
    before.is_some_and(|c| word(c) || c == '.') || after.is_some_and(word)
}

fn attribute_after(rest: &str) -> Option<&str> {
    let rest = rest.trim_start();
    if let Some(field) = rest.strip_prefix('.') {
        let end = field.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(field.len());
        return (end > 0).then(|| &field[..end]);
    }
    let quoted = rest.strip_prefix('[')?.trim_start();
    let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    quoted[1..].split(quote).next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(body: serde_json::Value) -> Outcome {
        Outcome { status: Some(200), body, ..Outcome::default() }
    }

    /// covers: 000-02, 000-41, B-12
    #[test]
    fn a_number_is_not_its_text() {
        let strict = Condition::compile("body.reject_id == 5").unwrap();
        let loose = Condition::compile("string(body.reject_id) == \"5\"").unwrap();
        let number = outcome(serde_json::json!({"reject_id": 5}));
        let text = outcome(serde_json::json!({"reject_id": "5"}));
        assert_eq!(strict.holds(&number, &[]), Verdict::True);
        assert_ne!(strict.holds(&text, &[]), Verdict::True);
        assert_eq!(loose.holds(&number, &[]), Verdict::True);
        assert_eq!(loose.holds(&text, &[]), Verdict::True);
        for body in [serde_json::json!({"reject_id": 4}), serde_json::json!({"reject_id": null})] {
            assert_ne!(strict.holds(&outcome(body), &[]), Verdict::True);
        }
    }

    #[test]
    fn a_missing_field_fails_and_is_not_true() {
        let rule = Condition::compile("body.reject_id == 5").unwrap();
        assert_eq!(rule.holds(&outcome(serde_json::json!({})), &[]), Verdict::Failed);
        assert_eq!(rule.holds(&outcome(serde_json::Value::Null), &[]), Verdict::Failed);
    }

    #[test]
    fn unknown_names_and_syntax_errors_are_refused() {
        assert!(Condition::compile("statuss == 5").unwrap_err().contains("statuss"));
        assert!(Condition::compile("status ==").is_err());
        assert!(Condition::compile("\"payer\" in subject").unwrap_err().contains("has(subject"));
    }

    #[test]
    fn the_attributes_read_are_known() {
        let rule = Condition::compile("subject.plan == \"a\" && subject['kind'] == \"b\"").unwrap();
        let names: Vec<_> = rule.attributes().iter().map(|name| name.to_string()).collect();
        assert_eq!(names, ["plan", "kind"]);
        let subject = [("plan".to_owned(), "a".to_owned()), ("kind".to_owned(), "b".to_owned())];
        assert_eq!(rule.holds(&outcome(serde_json::Value::Null), &subject), Verdict::True);
    }
}
