//! The body of an outcome, as conditions see it: readable JSON of a bounded size, or null.

use catraca::core::outcome::BodySize;
use serde_json::Value;

use super::unique_keys;
use crate::http::bodies::problem::Problem;

/// A body with its size, and whether it is unreadable.
#[derive(Debug, PartialEq)]
pub(super) struct OutcomeBody {
    pub value: Value,
    pub size: BodySize,
    pub is_invalid: bool,
}

impl Default for OutcomeBody {
    fn default() -> Self {
        Self { value: Value::Null, size: BodySize::Bytes(0), is_invalid: false }
    }
}

impl OutcomeBody {
    /// Reads JSON. It is invalid if a key is repeated or a value cannot be represented: a rule
    /// might otherwise read another value than the client of the upstream.
    pub fn from_json(json: &str, bytes_max: usize) -> Self {
        if json.len() > bytes_max {
            return Self { size: BodySize::OverLimit, ..Self::default() };
        }
        let size = BodySize::Bytes(json.len());
        let mut reader = serde_json::Deserializer::from_str(json);
        let value = unique_keys::value(&mut reader).and_then(|value| reader.end().map(|()| value));
        match value {
            Ok(value) => Self { value, size, is_invalid: false },
            Err(_) => Self { value: Value::Null, size, is_invalid: true },
        }
    }

    /// Reads a JSON string that contains JSON. Refuses anything but a string.
    pub fn from_raw_text(raw: &str, bytes_max: usize) -> Result<Self, Problem> {
        if !raw.starts_with('"') {
            return Err(Problem::bad("bad-json", "`body_text` of `outcome` must be a string"));
        }
        // A string that cannot be decoded, such as half of a surrogate pair, is an invalid body.
        Ok(match serde_json::from_str::<String>(raw) {
            Ok(text) if text.is_empty() => Self::default(),
            Ok(text) => Self::from_json(&text, bytes_max),
            Err(_) => Self { is_invalid: true, ..Self::default() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_invalid(json: &str) -> bool {
        OutcomeBody::from_json(json, 1 << 16).is_invalid
    }

    #[test]
    fn repeated_keys_and_values_without_a_representation_are_invalid() {
        for json in ["{\"a\":1,\"a\":2}", "1e400", "\"\\ud800\"", "{", "[1] 2", "<html>"] {
            assert!(is_invalid(json), "{json}");
        }
        for json in ["null", "{\"a\":1}", "1e300", "\"\\ud83d\\ude00\""] {
            assert!(!is_invalid(json), "{json}");
        }
        let large = OutcomeBody::from_json("{\"a\":1}", 3);
        assert_eq!((large.size, large.is_invalid), (BodySize::OverLimit, false));
    }

    #[test]
    fn a_text_is_read_as_json_and_must_be_a_string() {
        let read = |raw: &str| OutcomeBody::from_raw_text(raw, 1 << 16).expect("a string");
        assert_eq!(read(r#""{\"reject_id\":5}""#).value["reject_id"], 5);
        assert!(read(r#""<html>""#).is_invalid && read(r#""\ud800""#).is_invalid);
        assert_eq!(read("\"\""), OutcomeBody::default());
        assert!(OutcomeBody::from_raw_text("{}", 9).is_err());
    }
}
