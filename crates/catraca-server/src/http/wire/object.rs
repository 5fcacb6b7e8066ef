//! An object of a request: fields by their names, never by their places.
//!
//! A list in an object's place would otherwise be read as its fields in the order of the program
//! text, which nobody should depend on. Must not name a type of the program in an error.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// Something that is read from an object and from nothing else.
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(PhantomData)).map(Object)
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
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

    fn said(body: &str) -> String {
        read::<WireCheck<'_>>(body.as_bytes()).unwrap_err().detail
    }

    #[test]
    fn a_list_is_no_object_wherever_one_is_wanted() {
        for body in [r#"["g",{},null,null,null]"#, "\"g\"", "7", "null"] {
            let said = said(body);
            assert!(said.contains("expected an object") && !said.contains("Wire"), "{said}");
        }
        let nested = r#"{"ticket":"t","outcome":[200,null,{},null]}"#;
        let said = read::<WireSettle<'_>>(nested.as_bytes()).unwrap_err();
        assert!(said.detail.contains("expected an object"), "{said:?}");
        assert!(said.place.is_some_and(|(line, column)| line == 1 && column >= 24), "{said:?}");
        let list = r#"[{"gate":"g"},["g",{},null,null,null]]"#;
        let said = read_list::<WireCheck<'_>>(list.as_bytes()).unwrap_err();
        assert!(said.detail.contains("expected an object"), "{said:?}");
    }

    #[test]
    fn an_object_is_read_without_a_copy_and_with_its_place() {
        let read: WireCheck<'_> = read(br#"{"gate":"g","subject":{"ip":"192.0.2.1"}}"#).unwrap();
        assert!(matches!(read.gate, std::borrow::Cow::Borrowed("g")));
        assert!(said(r#"{"gate":"g","limit":1}"#).starts_with("unknown field `limit`"));
    }
}
