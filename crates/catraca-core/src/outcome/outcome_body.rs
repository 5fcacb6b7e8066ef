//! The body of an outcome, as conditions see it: readable JSON of a bounded size, or null.

use serde_json::Value;

use super::{BodySize, unique_keys};

/// A body with its size, and whether it is unreadable.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeBody {
    /// The body; null if it is too large or unreadable.
    pub value: Value,
    /// Its size.
    pub size: BodySize,
    /// Whether it is not readable as JSON.
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
    pub fn from_json(json: &[u8], bytes_max: usize) -> Self {
        if json.len() > bytes_max {
            return Self { size: BodySize::OverLimit, ..Self::default() };
        }
        let size = BodySize::Bytes(json.len());
        let mut reader = serde_json::Deserializer::from_slice(json);
        let value = unique_keys::value(&mut reader).and_then(|value| reader.end().map(|()| value));
        match value {
            Ok(value) => Self { value, size, is_invalid: false },
            Err(_) => Self { value: Value::Null, size, is_invalid: true },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_invalid(json: &str) -> bool {
        OutcomeBody::from_json(json.as_bytes(), 1 << 16).is_invalid
    }

    #[test]
    fn repeated_keys_and_values_without_a_representation_are_invalid() {
        for json in ["{\"a\":1,\"a\":2}", "1e400", "\"\\ud800\"", "{", "[1] 2", "<html>"] {
            assert!(is_invalid(json), "{json}");
        }
        for json in ["null", "{\"a\":1}", "1e300", "\"\\ud83d\\ude00\""] {
            assert!(!is_invalid(json), "{json}");
        }
        let large = OutcomeBody::from_json(b"{\"a\":1}", 3);
        assert_eq!((large.size, large.is_invalid), (BodySize::OverLimit, false));
    }
}
