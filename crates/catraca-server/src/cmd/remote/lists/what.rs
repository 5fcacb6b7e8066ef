//! Whom an entry is about, as a person writes it: an address, a range, or ATTRIBUTE=VALUE.
//!
//! Must not hide a private value: the server does that, under its secret.

use catraca::core::address::Range;
use serde_json::{Value, json};

/// Whom an entry is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// An address or a range.
    Range(String),
    /// An attribute's value.
    Value(String, String),
}

impl What {
    /// Reads one; what is wrong is said with a fix.
    pub fn read(text: &str) -> Result<Self, String> {
        let range = |text: &str| {
            let range = Range::parse(text).map_err(|error| error.to_string())?;
            Ok(Self::Range(range.to_string()))
        };
        match text.split_once('=') {
            Some(("ip", address)) => range(address),
            Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                Ok(Self::Value(name.to_owned(), value.to_owned()))
            }
            Some(_) => Err("write ATTRIBUTE=VALUE, such as customer=c-4711".to_owned()),
            None => range(text),
        }
    }

    /// As the server takes it.
    pub fn json(&self) -> Value {
        match self {
            Self::Range(range) => json!({ "range": range }),
            Self::Value(name, value) => json!({ "attribute": name, "value": value }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_range_or_a_value() {
        let range = |text: &str| Ok(What::Range(text.to_owned()));
        assert_eq!(What::read("203.0.113.0/24"), range("203.0.113.0/24"));
        assert_eq!(What::read("ip=203.0.113.9"), What::read("203.0.113.9"));
        let value = What::Value("token".to_owned(), "a=b".to_owned());
        assert_eq!(What::read("token=a=b"), Ok(value));
        for wrong in ["", "=x", "x=", "203.0.113.9/24", "300.1.1.1", "somebody"] {
            assert!(What::read(wrong).is_err(), "{wrong}");
        }
    }
}
