//! The path of a field in a JSON value, such as `usage.total_tokens`.

use std::fmt;

/// The most names of a path.
pub const STEPS_MAX: usize = 8;
/// The longest name of a path, in bytes.
pub const STEP_BYTES_MAX: usize = 64;

/// Names of fields, from the outermost to the innermost. A name of digits is also the index of an
/// item of a list, counted from zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath {
    steps: Vec<String>,
}

impl JsonPath {
    /// Parses names that are joined by dots.
    pub fn parse(text: &str) -> Option<Self> {
        let is_step = |step: &str| {
            (1..=STEP_BYTES_MAX).contains(&step.len())
                && !step.contains(|c: char| c.is_control() || c.is_whitespace())
        };
        let steps: Vec<String> = text.split('.').take(STEPS_MAX + 1).map(str::to_owned).collect();
        let is_valid = steps.len() <= STEPS_MAX && steps.iter().all(|step| is_step(step));
        is_valid.then_some(Self { steps })
    }

    /// The field in a value; `None` if there is none, or if it is null.
    #[cfg(feature = "outcome-body")]
    pub fn find<'v>(&self, value: &'v serde_json::Value) -> Option<&'v serde_json::Value> {
        use serde_json::Value;

        let found = self.steps.iter().try_fold(value, |value, step| match value {
            Value::Object(fields) => fields.get(step),
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        });
        found.filter(|found| !found.is_null())
    }

    /// Whether a field on the path is there in other letters, alone or with the field itself: some
    /// servers read `EMAIL` as `email`, and take the last one.
    #[cfg(feature = "outcome-body")]
    pub fn has_second_spelling(&self, value: &serde_json::Value) -> bool {
        use serde_json::Value;

        use crate::route::fold_case;

        let mut place = value;
        for step in &self.steps {
            let next = match place {
                Value::Object(fields) => {
                    let folded = fold_case(step);
                    if fields.keys().any(|name| name != step && fold_case(name) == folded) {
                        return true;
                    }
                    fields.get(step)
                }
                Value::Array(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
                _ => None,
            };
            let Some(next) = next else { return false };
            place = next;
        }
        false
    }

    /// The name of the field itself, without those of the fields around it.
    pub fn last_step(&self) -> &str {
        self.steps.last().map_or("", String::as_str)
    }

    /// Sets the field in a value, and makes the objects around it. Does nothing if one of the
    /// fields around it has another value already.
    #[cfg(feature = "outcome-body")]
    pub fn set(&self, value: &mut serde_json::Value, field: serde_json::Value) {
        use serde_json::Value;

        let mut place = value;
        for step in &self.steps {
            if place.is_null() {
                *place = Value::Object(serde_json::Map::new());
            }
            let Value::Object(fields) = place else { return };
            place = fields.entry(step.as_str()).or_insert(Value::Null);
        }
        *place = field;
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.steps.join("."))
    }
}

/// The text of a JSON value that has one spelling: a text, a whole number or a boolean. Other
/// values have several, such as `1.0` and `1.00`, and would be counted apart.
#[cfg(feature = "outcome-body")]
pub fn scalar_text(value: &serde_json::Value) -> Option<String> {
    use serde_json::Value;

    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(all(test, feature = "outcome-body"))]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_finds_fields_and_items() {
        let value = json!({"usage": {"total_tokens": 7, "none": null}, "list": [{"a": 1}], "1": 2});
        let find = |path: &str| JsonPath::parse(path)?.find(&value).cloned();
        assert_eq!(find("usage.total_tokens"), Some(json!(7)));
        assert_eq!(find("list.0.a"), Some(json!(1)));
        assert_eq!(find("1"), Some(json!(2)));
        for absent in ["usage.none", "usage.x", "list.1", "list.a", "usage.total_tokens.x", "x"] {
            assert_eq!(find(absent), None, "{absent}");
        }
    }

    #[test]
    fn a_field_that_is_set_is_found() {
        let mut value = serde_json::Value::Null;
        for (number, path) in ["a.b", "a.0.c", "d", "a.b.x"].into_iter().enumerate() {
            JsonPath::parse(path).unwrap().set(&mut value, json!(number));
        }
        // `a.b` is a number, which cannot have a field.
        assert_eq!(value, json!({"a": {"b": 0, "0": {"c": 1}}, "d": 2}));
        assert_eq!(JsonPath::parse("a.0.c").unwrap().find(&value), Some(&json!(1)));
        assert_eq!(JsonPath::parse("a.0.c").unwrap().last_step(), "c");
    }

    #[test]
    fn paths_are_bounded() {
        for text in ["", ".", "a.", ".a", "a..b", "a b", "a\n", "a.b.c.d.e.f.g.h.i"] {
            assert_eq!(JsonPath::parse(text), None, "{text:?}");
        }
        assert_eq!(JsonPath::parse(&"x".repeat(STEP_BYTES_MAX + 1)), None);
        assert!(JsonPath::parse("a.b.c.d.e.f.g.h").is_some());
    }

    #[test]
    fn only_values_with_one_spelling_have_a_text() {
        let text = |json: &str| scalar_text(&serde_json::from_str(json).unwrap());
        assert_eq!(text("\"x\"").as_deref(), Some("x"));
        assert_eq!(text("-7").as_deref(), Some("-7"));
        assert_eq!(text("18446744073709551615").as_deref(), Some("18446744073709551615"));
        assert_eq!(text("true").as_deref(), Some("true"));
        for json in ["1.0", "1e2", "18446744073709551616", "[]", "{}", "null"] {
            assert_eq!(text(json), None, "{json}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_a_panic(
            text in "\\PC{0,200}",
            json in "[\\[\\]{}\":,a0-9]{0,40}",
        ) {
            let value = serde_json::from_str(&json).unwrap_or(json!({ "a": [text.clone()] }));
            if let Some(path) = JsonPath::parse(&text) {
                prop_assert_eq!(path.to_string(), text);
                let _ = path.find(&value);
            }
        }
    }
}
