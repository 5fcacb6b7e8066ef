//! Compares an answer with an expectation: every expected field must match, others are ignored.
//!
//! Lists must have the same length and order, so that an extra row is a difference. All
//! differences are reported, not only the first.

use serde_json::Value;

use super::expectation::{ANY, NULL};
use super::report::Difference;

/// The fields of the answer that differ from the expectation.
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
            for (index, (item, got)) in items.iter().zip(answer).enumerate() {
                compare(item, Some(got), &format!("{path}[{index}]"), all);
            }
        }
        (Value::Array(items), Some(Value::Array(answer))) => {
            let expected = format!("{} items", items.len());
            let got = format!("{} items: {}", answer.len(), summarize(answer));
            all.push(Difference { path: path.to_owned(), expected, got });
        }
        _ if matches_value(expected, got) => {}
        _ => all.push(Difference {
            path: path.to_owned(),
            expected: describe(expected),
            got: got.map_or("nothing".to_owned(), Value::to_string),
        }),
    }
}

fn matches_value(expected: &Value, got: Option<&Value>) -> bool {
    let absent = got.is_none_or(Value::is_null);
    match (expected, got) {
        (Value::String(word), _) if word == NULL => absent,
        (Value::String(word), _) if word == ANY => !absent,
        // `30` and `30.0` are equal. Two integers are compared as integers, because above 2^53
        // different ones can be equal as floats.
        (Value::Number(wanted), Some(Value::Number(got))) => {
            wanted == got || (wanted.as_f64() == got.as_f64() && (wanted.is_f64() || got.is_f64()))
        }
        (wanted, Some(got)) => wanted == got,
        (_, None) => false,
    }
}

fn describe(expected: &Value) -> String {
    match expected {
        Value::String(word) if word == NULL => "null".to_owned(),
        Value::String(word) if word == ANY => "any value".to_owned(),
        other => other.to_string(),
    }
}

/// The items of a list, each as its policy's name if it has one: whole rows are too long to read.
fn summarize(items: &[Value]) -> String {
    let name = |item: &Value| item.get("policy").unwrap_or(item).to_string();
    items.iter().map(name).collect::<Vec<_>>().join(", ")
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
