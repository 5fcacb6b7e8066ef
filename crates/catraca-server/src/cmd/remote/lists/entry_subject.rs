//! The subject of a list entry: an address, a range, or ATTRIBUTE=VALUE.
//!
//! A private value is sent in clear: the server computes the pseudonym with its secret.

use catraca::core::address::AddressRange;
use serde_json::{Value, json};

/// The subject of a list entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EntrySubject {
    /// An address or a range.
    Range(String),
    /// An attribute's value.
    Value(String, String),
}

impl EntrySubject {
    /// Parses an entry; the error says how to fix it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let range = |text: &str| {
            let range = AddressRange::parse(text).map_err(|error| error.to_string())?;
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

    /// The fields of the entry in the API.
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
        let range = |text: &str| Ok(EntrySubject::Range(text.to_owned()));
        assert_eq!(EntrySubject::parse("203.0.113.0/24"), range("203.0.113.0/24"));
        assert_eq!(EntrySubject::parse("ip=203.0.113.9"), EntrySubject::parse("203.0.113.9"));
        let value = EntrySubject::Value("token".to_owned(), "a=b".to_owned());
        assert_eq!(EntrySubject::parse("token=a=b"), Ok(value));
        for wrong in ["", "=x", "x=", "203.0.113.9/24", "300.1.1.1", "someone"] {
            assert!(EntrySubject::parse(wrong).is_err(), "{wrong}");
        }
    }
}
