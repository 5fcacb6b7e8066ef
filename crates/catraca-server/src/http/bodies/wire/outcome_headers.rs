//! Headers of an outcome; a name that is given twice is an error.
//!
//! A ban rule may read either of two values, and the other may be what the upstream meant.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, Visitor};

/// Parses headers; names are compared and stored in lower case.
pub fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    deserializer.deserialize_map(OutcomeHeadersVisitor)
}

struct OutcomeHeadersVisitor;

impl<'de> Visitor<'de> for OutcomeHeadersVisitor {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of header names and strings")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut headers = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            let name = name.to_ascii_lowercase();
            if headers.contains_key(&name) {
                return Err(M::Error::custom(format!("header `{name}` is given twice")));
            }
            headers.insert(name, value);
        }
        Ok(headers)
    }
}
