//! The subject of a request body: a map of attribute names to strings; integers are taken as their
//! digits.
//!
//! Anything else is an error that names the attribute: silently dropping one would change the key.

use std::borrow::Cow;
use std::fmt;

use catraca::Subject;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// The most attributes of one subject.
const ATTRIBUTES_MAX: usize = 64;

/// The attributes of a subject, borrowed from the body.
#[derive(Debug, Default)]
pub struct WireSubject<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl WireSubject<'_> {
    /// Borrows the subject.
    pub fn subject(&self) -> Subject<'_> {
        self.0.iter().map(|(name, value)| (&**name, &**value)).collect()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for WireSubject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SubjectVisitor)
    }
}

impl JsonSchema for WireSubject<'_> {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Subject")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The attributes of a caller. Integers are taken as their digits; \
                            attributes that the catalog does not read are ignored.",
            "type": "object",
            "maxProperties": ATTRIBUTES_MAX,
            "additionalProperties": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            "examples": [{ "ip": "198.51.100.7" }],
        })
    }
}

/// The same, owned, for calls that run after the body is dropped.
#[derive(Debug)]
pub struct OwnedSubject(WireSubject<'static>);

impl OwnedSubject {
    /// Borrows the subject.
    pub fn subject(&self) -> Subject<'_> {
        self.0.subject()
    }
}

impl JsonSchema for OwnedSubject {
    fn schema_name() -> Cow<'static, str> {
        WireSubject::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        WireSubject::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WireSubject::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for OwnedSubject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let WireSubject(pairs) = WireSubject::deserialize(deserializer)?;
        let to_owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let pairs = pairs.into_iter().map(|(name, value)| (to_owned(name), to_owned(value)));
        Ok(Self(WireSubject(pairs.collect())))
    }
}

struct SubjectVisitor;

impl<'de> Visitor<'de> for SubjectVisitor {
    type Value = WireSubject<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of attributes")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut pairs: Vec<(Cow<'de, str>, Cow<'de, str>)> = Vec::with_capacity(4);
        while let Some(pair) = map.next_entry::<AttributeText<'de>, AttributeText<'de>>()? {
            let (AttributeText(name), AttributeText(value)) = pair;
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(M::Error::custom(format!("attribute `{name}` is given twice")));
            }
            if pairs.len() == ATTRIBUTES_MAX {
                return Err(M::Error::custom("a subject may have up to 64 attributes"));
            }
            pairs.push((name, value));
        }
        Ok(WireSubject(pairs))
    }
}

/// A string, or an integer as its digits.
struct AttributeText<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for AttributeText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AttributeTextVisitor).map(AttributeText)
    }
}

struct AttributeTextVisitor;

impl<'de> Visitor<'de> for AttributeTextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an integer")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }
}
