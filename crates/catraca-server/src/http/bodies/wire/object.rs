//! JSON objects of a request: fields by name, never by position.
//!
//! serde's derived types also accept a list of the fields in their order in the source, which must
//! not become part of the API. Errors name no Rust type.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// A value that is parsed from a JSON object and from nothing else.
#[derive(Debug)]
pub struct JsonObject<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(JsonObjectVisitor(PhantomData)).map(JsonObject)
    }
}

struct JsonObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for JsonObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<T, M::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{WireCheck, WireSettle, read, read_list};

    fn error_detail(body: &str) -> String {
        read::<WireCheck<'_>>(body.as_bytes()).unwrap_err().detail
    }

    #[test]
    fn a_list_is_refused_where_an_object_is_expected() {
        for body in [r#"["g",{},null,null,null]"#, "\"g\"", "7", "null"] {
            let said = error_detail(body);
            assert!(said.contains("expected an object") && !said.contains("Wire"), "{said}");
        }
        let nested = r#"{"ticket":"t","outcome":[200,null,{},null]}"#;
        let said = read::<WireSettle<'_>>(nested.as_bytes()).unwrap_err();
        assert!(said.detail.contains("expected an object"), "{said:?}");
        assert!(said.position.is_some_and(|(line, column)| line == 1 && column >= 24), "{said:?}");
        let list = r#"[{"gate":"g"},["g",{},null,null,null]]"#;
        let said = read_list::<WireCheck<'_>>(list.as_bytes()).unwrap_err();
        assert!(said.detail.contains("expected an object"), "{said:?}");
    }

    #[test]
    fn an_object_is_parsed_without_a_copy() {
        let read: WireCheck<'_> = read(br#"{"gate":"g","subject":{"ip":"192.0.2.1"}}"#).unwrap();
        assert!(matches!(read.gate, std::borrow::Cow::Borrowed("g")));
        assert!(error_detail(r#"{"gate":"g","limit":1}"#).starts_with("unknown field `limit`"));
    }
}
