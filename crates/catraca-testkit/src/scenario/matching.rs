//! Comparing: everything expected must be in the answer; what is not expected does not matter.
//!
//! Lists must have the same length and order, so that a row too many shows. Must not stop at the
//! first difference.

use serde_json::Value;

use super::expect::{ANY, NULL};
use super::report::Difference;

/// Where the answer differs from what is expected.
pub(super) fn differences(expected: &Value, got: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    compare(expected, Some(got), "", &mut all);
    all
}

fn compare(expected: &Value, got: Option<&Value>, path: &str, all: &mut Vec<Difference>) {
    match (expected, got) {
        (Value::Object(fields), Some(Value::Object(answer))) => {
            for (name, value) in fields {
                compare(value, answer.get(name), &join(path, name), all);
            }
        }
        (Value::Array(items), Some(Value::Array(answer))) if items.len() == answer.len() => {
            for (place, (item, got)) in items.iter().zip(answer).enumerate() {
                compare(item, Some(got), &format!("{path}[{place}]"), all);
            }
        }
        (Value::Array(items), Some(Value::Array(answer))) => {
            let count = |count| format!("{count} items");
            let (expected, got) =
                (count(items.len()), format!("{}: {}", count(answer.len()), short(answer)));
            all.push(Difference { path: path.to_owned(), expected, got });
        }
        _ if fits(expected, got) => {}
        _ => all.push(Difference {
            path: path.to_owned(),
            expected: shown(expected),
            got: got.map_or("nothing".to_owned(), Value::to_string),
        }),
    }
}

fn fits(expected: &Value, got: Option<&Value>) -> bool {
    let absent = got.is_none_or(Value::is_null);
    match (expected, got) {
        (Value::String(word), _) if word == NULL => absent,
        (Value::String(word), _) if word == ANY => !absent,
        (Value::Number(wanted), Some(Value::Number(got))) => {
            wanted == got || (wanted.as_f64() == got.as_f64() && (wanted.is_f64() || got.is_f64()))
        }
        (wanted, Some(got)) => wanted == got,
        (_, None) => false,
    }
}

fn shown(expected: &Value) -> String {
    match expected {
        Value::String(word) if word == NULL => "null".to_owned(),
        Value::String(word) if word == ANY => "any value".to_owned(),
        other => other.to_string(),
    }
}

/// Each item by its policy if it has one, since a whole decision is too much to read.
fn short(items: &[Value]) -> String {
    let named = |item: &Value| item.get("policy").unwrap_or(item).to_string();
    items.iter().map(named).collect::<Vec<_>>().join(", ")
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(expected: Value, got: Value) -> Vec<String> {
        differences(&expected, &got).into_iter().map(|found| found.path).collect()
    }

    #[test]
    fn what_is_not_expected_does_not_matter() {
        assert!(paths(json!({"a": 1}), json!({"a": 1, "b": 2})).is_empty());
        assert_eq!(paths(json!({"a": 1, "b": 3}), json!({"a": 2, "b": 2})), ["a", "b"]);
    }

    #[test]
    fn lists_are_compared_item_by_item_and_to_their_end() {
        let got = json!({"rows": [{"a": 1, "b": 1}, {"a": 2}]});
        assert!(paths(json!({"rows": [{"a": 1}, {"a": 2}]}), got.clone()).is_empty());
        assert_eq!(paths(json!({"rows": [{"a": 1}, {"a": 3}]}), got.clone()), ["rows[1].a"]);
        assert_eq!(paths(json!({"rows": [{"a": 1}]}), got), ["rows"]);
    }

    #[test]
    fn null_and_any_stand_for_what_toml_cannot_say() {
        let got = json!({"none": null, "some": 5});
        assert!(
            paths(json!({"none": "null", "absent": "null", "some": "any"}), got.clone()).is_empty()
        );
        let wrong = json!({"none": "any", "absent": "any", "some": "null"});
        assert_eq!(paths(wrong, got), ["absent", "none", "some"]);
    }

    #[test]
    fn a_whole_number_equals_itself_with_a_point() {
        assert!(paths(json!({"a": 30}), json!({"a": 30.0})).is_empty());
        assert_eq!(paths(json!({"a": 30}), json!({"a": 30.5})), ["a"]);
        let large = 9_007_199_254_740_993_i64;
        assert_eq!(paths(json!({"a": large}), json!({"a": large - 1})), ["a"]);
    }
}
