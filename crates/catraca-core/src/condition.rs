//! Conditions: CEL over `status`, `body`, `headers` and `subject`.
//!
//! Wraps the expression library so that the rest of the crate never sees its types.
//! Must not fail a request: whatever goes wrong while evaluating is a `false` that is counted.

mod shape;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use cel::objects::Key;
use cel::{Context, Program, Value};

use crate::outcome::Outcome;
use shape::Shape;

/// The largest body that a loop goes through, in values: a loop may compare each with every other.
const LOOPED_VALUES_MAX: usize = 4_096;

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
    /// It read a missing field, compared unlike things, or would loop over too large a body; counts
    /// as not holding.
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

    /// Evaluates the condition on an outcome.
    pub fn holds(&self, outcome: &Outcome, subject: &[(String, String)]) -> Verdict {
        if self.shape.loops && values(&outcome.body) > LOOPED_VALUES_MAX {
            return Verdict::Failed;
        }
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

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// How many values there are in a body, itself included.
fn values(json: &serde_json::Value) -> usize {
    match json {
        serde_json::Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        serde_json::Value::Object(fields) => 1 + fields.values().map(values).sum::<usize>(),
        _ => 1,
    }
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
    fn a_pattern_that_cannot_be_used_is_refused_at_once() {
        for pattern in ["(", "(a{1000}){1000}", "a{2,1}"] {
            let rule = format!("body.x.matches('{pattern}')");
            let said = Condition::compile(&rule).unwrap_err().to_string();
            assert!(said.contains("the pattern of `matches` cannot be used"), "{pattern}: {said}");
        }
        assert!(Condition::compile("body.x.matches('^a+$')").is_ok());
    }

    #[test]
    fn a_missing_field_fails_and_is_not_true() {
        let rule = Condition::compile("body.reject_id == 5").unwrap();
        assert_eq!(rule.holds(&outcome(serde_json::json!({})), &[]), Verdict::Failed);
        assert_eq!(rule.holds(&outcome(serde_json::Value::Null), &[]), Verdict::Failed);
    }

    #[test]
    fn loops_have_variables_of_their_own() {
        let holds = |source: &str, body| {
            Condition::compile(source).unwrap().holds(&outcome(body), &[]) == Verdict::True
        };
        let items = || serde_json::json!({"items": [1, 5], "kind": "subject"});
        assert!(holds("body.items.exists(x, x == 5)", items()));
        assert!(holds("body.items.exists_one(x, x == 5)", items()));
        assert!(!holds("body.items.all(x, x == 5)", items()));
        assert!(holds("size(body.items.filter(subject, subject > 1)) == 1", items()));
        assert!(holds("body.kind == \"subject\"", items()));
    }

    #[test]
    fn what_a_condition_reads_of_the_subject_is_known() {
        let rule = Condition::compile(
            "has(subject.payer) && subject[\"plan\"] == \"pro\" && body.subject == 1",
        );
        let rule = rule.unwrap();
        assert_eq!(
            rule.attributes().iter().map(|name| &**name).collect::<Vec<_>>(),
            ["payer", "plan"]
        );
        assert_eq!(rule.values().iter().map(|name| &**name).collect::<Vec<_>>(), ["plan"]);
    }

    #[test]
    fn every_function_that_is_offered_works() {
        let body = serde_json::json!({"s": "abc", "n": 3});
        for source in [
            "body.s.contains(\"b\")",
            "body.s.startsWith(\"a\")",
            "body.s.endsWith(\"c\")",
            "body.s.matches(\"^a.c$\")",
            "size(body.s) == 3",
            "string(body.n) == \"3\"",
            "int(\"3\") == body.n",
            "uint(\"3\") == 3u",
            "double(body.n) == 3.0",
        ] {
            let rule = Condition::compile(source).unwrap();
            assert_eq!(rule.holds(&outcome(body.clone()), &[]), Verdict::True, "{source}");
        }
    }

    #[test]
    fn what_could_never_hold_or_never_end_is_refused() {
        let refused = |source: &str| Condition::compile(source).unwrap_err();
        assert!(refused("body.s.startWith(\"a\")").contains("no function `startWith`"));
        assert!(refused("max(1, 2) == 2").contains("no function `max`"));
        assert!(refused("headers['X-Ban'] == 'y'").contains("write `x-ban`"));
        assert!(refused("body.a.all(x, body.a.all(y, x == y))").contains("inside a loop"));
        assert!(refused("body.a.exists(x, x.matches('a+'))").contains("inside a loop"));
        assert!(refused("body.a.matches(body.b)").contains("its pattern as a text"));
        assert!(refused("body.a.map(x, x + x) == []").contains("`map`"));
        assert!(refused("body.a.map(x, x > 1, x + x) == []").contains("`map`"));
        let long = format!("1{} == 41", "+1".repeat(40));
        assert!(refused(&long).contains("deep"));
    }

    #[test]
    fn a_loop_over_too_large_a_body_fails_and_is_not_judged() {
        let rule = Condition::compile("body.a.exists(x, x in body.a)").unwrap();
        let body = |count: usize| serde_json::json!({"a": vec![1; count]});
        assert_eq!(rule.holds(&outcome(body(1_000)), &[]), Verdict::True);
        assert_eq!(rule.holds(&outcome(body(LOOPED_VALUES_MAX)), &[]), Verdict::Failed);
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
