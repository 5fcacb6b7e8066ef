//! Tests of evaluating conditions, and of the errors of compiling them.

use std::sync::Arc;

use cel::{Context, Program};

use super::cost::LOOPED_VALUES_MAX;
use super::program::ENV;
use super::*;
use crate::outcome::Outcome;

impl Condition {
    fn holds(&self, outcome: &Outcome, attributes: &[(String, String)]) -> ConditionResult {
        ConditionEvaluator::new(outcome, attributes, 64 * 1024).evaluate(self)
    }
}

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
    assert_eq!(strict.holds(&number, &[]), ConditionResult::True);
    assert_ne!(strict.holds(&text, &[]), ConditionResult::True);
    assert_eq!(loose.holds(&number, &[]), ConditionResult::True);
    assert_eq!(loose.holds(&text, &[]), ConditionResult::True);
    for body in [serde_json::json!({"reject_id": 4}), serde_json::json!({"reject_id": null})] {
        assert_ne!(strict.holds(&outcome(body), &[]), ConditionResult::True);
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
    assert_eq!(rule.holds(&outcome(serde_json::json!({})), &[]), ConditionResult::Failed);
    assert_eq!(rule.holds(&outcome(serde_json::Value::Null), &[]), ConditionResult::Failed);
}

#[test]
fn loops_have_variables_of_their_own() {
    let holds = |source: &str, body| {
        Condition::compile(source).unwrap().holds(&outcome(body), &[]) == ConditionResult::True
    };
    let items = || serde_json::json!({"items": [1, 5], "kind": "subject"});
    assert!(holds("body.items.exists(x, x == 5)", items()));
    assert!(holds("body.items.exists_one(x, x == 5)", items()));
    assert!(!holds("body.items.all(x, x == 5)", items()));
    assert!(holds("size(body.items.filter(subject, subject > 1)) == 1", items()));
    assert!(holds("body.kind == \"subject\"", items()));
}

#[test]
fn the_attributes_and_values_that_a_condition_reads_are_found() {
    let rule = Condition::compile(
        "has(subject.payer) && subject[\"plan\"] == \"pro\" && body.subject == 1",
    );
    let rule = rule.unwrap();
    assert_eq!(rule.attributes().iter().map(|name| &**name).collect::<Vec<_>>(), ["payer", "plan"]);
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
        assert_eq!(rule.holds(&outcome(body.clone()), &[]), ConditionResult::True, "{source}");
    }
}

#[test]
fn conditions_that_never_hold_or_take_too_long_are_refused() {
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
fn a_loop_over_too_large_a_body_fails_and_is_not_evaluated() {
    let rule = Condition::compile("body.a.exists(x, x in body.a)").unwrap();
    let body = |count: usize| serde_json::json!({"a": vec![1; count]});
    assert_eq!(rule.holds(&outcome(body(1_000)), &[]), ConditionResult::True);
    assert_eq!(rule.holds(&outcome(body(LOOPED_VALUES_MAX)), &[]), ConditionResult::Failed);
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
    assert_eq!(rule.holds(&outcome(serde_json::Value::Null), &subject), ConditionResult::True);
}

#[test]
fn a_body_over_the_maximum_is_null_and_said_to_be_truncated() {
    let outcome = outcome(serde_json::json!({"reject_id": 5}));
    let bytes = outcome.body.to_string().len();
    let judged = |source: &str, most: usize| {
        let mut judge = ConditionEvaluator::new(&outcome, &[], most);
        let verdict = judge.evaluate(&Condition::compile(source).unwrap());
        (verdict, judge.body_truncated())
    };
    for (source, within, over) in [
        ("body.reject_id == 5", ConditionResult::True, ConditionResult::Failed),
        ("body == null", ConditionResult::False, ConditionResult::True),
        ("body_truncated", ConditionResult::False, ConditionResult::True),
        ("body_truncated || body.reject_id == 4", ConditionResult::False, ConditionResult::True),
        ("body.reject_id == 4 || body_truncated", ConditionResult::False, ConditionResult::True),
        ("!body_truncated && body.reject_id == 5", ConditionResult::True, ConditionResult::False),
    ] {
        assert_eq!(judged(source, bytes), (within, false), "{source}");
        assert_eq!(judged(source, bytes - 1), (over, true), "{source}");
    }
    // This condition does not read the body, so its size does not matter.
    assert_eq!(judged("status == 200", 0), (ConditionResult::True, false));
}

#[test]
fn a_body_that_no_condition_needs_is_not_converted() {
    let outcome = outcome(serde_json::json!({"reject_id": 5}));
    let mut judge = ConditionEvaluator::new(&outcome, &[], 64);
    for source in ["status == 200", "headers == {}", "status == 403 && body.reject_id == 5"] {
        judge.evaluate(&Condition::compile(source).unwrap());
        assert!(!judge.has_converted_body(), "{source}");
    }
    judge.evaluate(&Condition::compile("body.reject_id == 5").unwrap());
    assert!(judge.has_converted_body());
}

/// The CEL library has no `matches` in this build, so it cannot compile a pattern at every call.
#[test]
fn patterns_are_those_compiled_with_the_condition() {
    let program = Program::compile("'abc'.matches('b')").unwrap();
    assert!(program.execute(&Context::with_env(Arc::clone(&ENV))).is_err());
    let rule = Condition::compile("matches(body.a, '^x') || body.b.matches('y$')").unwrap();
    for (a, b, verdict) in [
        ("xa", "", ConditionResult::True),
        ("a", "ay", ConditionResult::True),
        ("ax", "ya", ConditionResult::False),
    ] {
        assert_eq!(rule.holds(&outcome(serde_json::json!({"a": a, "b": b})), &[]), verdict);
    }
    let number = outcome(serde_json::json!({"a": 1, "b": {}}));
    assert_eq!(rule.holds(&number, &[]), ConditionResult::Failed);
}

#[test]
fn all_conditions_of_a_settle_share_one_bound() {
    let items: Vec<String> = (0..500).map(|at| format!("item {at}")).collect();
    let outcome = outcome(serde_json::json!({"items": items, "text": "x".repeat(40_000)}));
    let again_and_again = Condition::compile("body.items.exists(x, body.text.contains(x))");
    let again_and_again = again_and_again.unwrap();
    let cheap = Condition::compile("status == 200 && body.text.startsWith('x')").unwrap();
    let verdicts = || -> Vec<ConditionResult> {
        let mut judge = ConditionEvaluator::new(&outcome, &[], 64 * 1024);
        let rules = std::iter::repeat_n(&again_and_again, 16).chain([&cheap]);
        rules.map(|rule| judge.evaluate(rule)).collect()
    };
    let first = verdicts();
    assert_eq!(first[0], ConditionResult::False, "one alone is judged");
    assert_eq!(first[15], ConditionResult::Failed, "sixteen are too much");
    assert_eq!(first[16], ConditionResult::True, "what is cheap is judged even then");
    assert_eq!(first, verdicts());
}

#[test]
fn only_a_loop_that_searches_a_variable_again_counts_as_such() {
    let cost = |source: &str| Condition::compile(source).unwrap().analysis.cost;
    for source in [
        "body.a.exists(x, x.id == 5 && x.kind in ['a', 'b'])",
        "body.a.exists(x, x.id == body.id)",
        "body.a.exists(x, x.name == subject.name || x.name.contains(body.name))",
        "size(body.a.filter(x, x.name.startsWith(headers['x']))) > 2",
    ] {
        assert_eq!((cost(source).repeated, cost(source).repeated_texts), (0, 0), "{source}");
    }
    for source in [
        "body.a.exists(x, x in body.b)",
        "body.a.exists(x, body.b.contains(x))",
        "body.a.exists(x, body.b == body.c)",
        "body.a.exists(x, x == body.b + body.c)",
        "body.a.exists(x, x == [body.b])",
    ] {
        assert!(cost(source).repeated > 0, "{source}");
    }
    let texts = cost("body.a.exists(x, headers['x'].contains(x))");
    assert_eq!((texts.repeated, texts.repeated_texts), (0, 1));
}

#[test]
fn a_pattern_that_may_be_slow_costs_more() {
    let scans = |source: &str| Condition::compile(source).unwrap().analysis.cost.scans;
    assert!(scans("body.a.matches('^ab+$')") < scans("body.a.matches('(a{1,50}b){1,20}$')"));
}
