//! A subject on the wire: an open map of names to texts; whole numbers are taken as their digits.
//!
//! Must refuse anything else by name: a silently dropped attribute would change the key.

use std::borrow::Cow;
use std::fmt;

use catraca::Subject;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// The most attributes of one subject.
const ATTRIBUTES_MAX: usize = 64;

/// The attributes of a caller.
#[derive(Debug, Default)]
pub struct WireSubject<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl WireSubject<'_> {
    /// The subject, borrowed.
    pub fn subject(&self) -> Subject<'_> {
        self.0.iter().map(|(name, value)| (&**name, &**value)).collect()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for WireSubject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Attributes)
    }
}

impl JsonSchema for WireSubject<'_> {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Subject")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The attributes known of a caller. Whole numbers are taken as their \
                            digits; attributes that nothing reads are ignored.",
            "type": "object",
            "maxProperties": ATTRIBUTES_MAX,
            "additionalProperties": { "type": ["string", "integer"] },
            "examples": [{ "ip": "198.51.100.7" }],
        })
    }
}

/// The same, for calls that outlive the body's reading.
#[derive(Debug)]
pub struct OwnedSubject(WireSubject<'static>);

impl OwnedSubject {
    /// The subject, borrowed.
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
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let pairs = pairs.into_iter().map(|(name, value)| (owned(name), owned(value)));
        Ok(Self(WireSubject(pairs.collect())))
    }
}

struct Attributes;

impl<'de> Visitor<'de> for Attributes {
    type Value = WireSubject<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of attributes")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut pairs: Vec<(Cow<'de, str>, Cow<'de, str>)> = Vec::with_capacity(4);
        while let Some((Text(name), Text(value))) = map.next_entry::<Text<'de>, Text<'de>>()? {
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(M::Error::custom(format!("attribute `{name}` is given twice")));
            }
            if pairs.len() == ATTRIBUTES_MAX {
                return Err(M::Error::custom("a subject may have 64 attributes"));
            }
            pairs.push((name, value));
        }
        Ok(WireSubject(pairs))
    }
}

/// A text, or a whole number as its digits.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Text)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a whole number")
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
