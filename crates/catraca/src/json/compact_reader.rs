//! Reads JSON in the form that a server writes: no white space, keys in the order of the type,
//! texts without escapes, integers. For every other form there is `serde_json`.
//!
//! A general reader looks at each key letter by letter and then asks which field it is, which took
//! more instructions than all else that a client adds to an HTTP call. Here the next field of the
//! type is expected, and compared at once. The fields have one definition, their type.

use std::fmt;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

/// The most digits of an integer that is read here; more could exceed 64 bits.
const DIGITS_MAX: usize = 18;

/// Reads a value from JSON in any form.
pub(crate) fn read_json<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    match read_compact(text) {
        Some(value) => Ok(value),
        None => serde_json::from_str(text),
    }
}

/// The value, if the text has the form that a server writes.
fn read_compact<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    let mut reader = CompactReader { text, next: 0 };
    let value = T::deserialize(&mut reader).ok()?;
    (reader.next == text.len()).then_some(value)
}

/// Text, and the index of its first byte that was not read.
struct CompactReader<'de> {
    text: &'de str,
    next: usize,
}

/// The text has another form, or is invalid. `serde_json` finds out which.
#[derive(Debug)]
struct OtherForm;

impl<'de> CompactReader<'de> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.next).copied()
    }

    /// Skips this text if it comes next.
    fn skip(&mut self, expected: &str) -> bool {
        let is_next = self.text.as_bytes()[self.next..].starts_with(expected.as_bytes());
        if is_next {
            self.next += expected.len();
        }
        is_next
    }

    fn expect(&mut self, expected: u8) -> Result<(), OtherForm> {
        if self.peek() != Some(expected) {
            return Err(OtherForm);
        }
        self.next += 1;
        Ok(())
    }

    /// Skips this key and its colon if they come next.
    fn skip_key(&mut self, name: &str) -> bool {
        let rest = &self.text.as_bytes()[self.next..];
        let colon = name.len() + 2;
        let is_next = rest.len() > colon
            && rest[0] == b'"'
            && rest[1..].starts_with(name.as_bytes())
            && rest[colon - 1] == b'"'
            && rest[colon] == b':';
        if is_next {
            self.next += colon + 1;
        }
        is_next
    }

    /// A text without escapes.
    fn read_text(&mut self) -> Result<&'de str, OtherForm> {
        self.expect(b'"')?;
        let rest = &self.text.as_bytes()[self.next..];
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
        let length = rest.iter().position(is_special).ok_or(OtherForm)?;
        if rest[length] != b'"' {
            return Err(OtherForm);
        }
        let end = self.next + length;
        let text = self.text.get(self.next..end).ok_or(OtherForm)?;
        self.next = end + 1;
        Ok(text)
    }

    /// The sign and the digits of an integer. The caller checks what follows it.
    fn read_integer(&mut self) -> Result<(bool, u64), OtherForm> {
        let is_negative = self.skip("-");
        let rest = &self.text.as_bytes()[self.next..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
        let mut count = 0;
        let mut value = 0;
        for digit in digits.take(DIGITS_MAX + 1) {
            count += 1;
            value = value * 10 + u64::from(digit - b'0');
        }
        // `-0` and `01` are not integers of JSON.
        let is_plain = match value {
            0 => count == 1 && !is_negative,
            _ => rest[0] != b'0' && count <= DIGITS_MAX,
        };
        if !is_plain {
            return Err(OtherForm);
        }
        self.next += count;
        Ok((is_negative, value))
    }
}

macro_rules! deserialize_integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OtherForm> {
            match self.read_integer()? {
                (false, value) => visitor.visit_u64(value),
                (true, value) => visitor.visit_i64(-(value.cast_signed())),
            }
        }
    )*};
}

macro_rules! deserialize_texts {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OtherForm> {
            visitor.visit_borrowed_str(self.read_text()?)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut CompactReader<'de> {
    type Error = OtherForm;

    deserialize_integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    deserialize_texts! { deserialize_str deserialize_string }

    forward_to_deserialize_any! {
        f32 f64 i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct map identifier
        ignored_any
    }

    /// A type that does not say what it expects, or expects what no server writes.
    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, OtherForm> {
        Err(OtherForm)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OtherForm> {
        if self.skip("true") {
            return visitor.visit_bool(true);
        }
        if self.skip("false") {
            return visitor.visit_bool(false);
        }
        Err(OtherForm)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OtherForm> {
        if self.skip("null") {
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, OtherForm> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OtherForm> {
        self.expect(b'[')?;
        visitor.visit_seq(Items { reader: self, is_first: true })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, OtherForm> {
        self.expect(b'{')?;
        visitor.visit_map(Fields { reader: self, names, is_first: true })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, OtherForm> {
        visitor.visit_enum(Word(self.read_text()?))
    }
}

/// The rest of a list.
struct Items<'r, 'de> {
    reader: &'r mut CompactReader<'de>,
    is_first: bool,
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = OtherForm;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, OtherForm> {
        let is_first = std::mem::take(&mut self.is_first);
        if is_first && self.reader.skip("]") {
            return Ok(None);
        }
        if !is_first && !self.reader.skip(",") {
            return self.reader.expect(b']').map(|()| None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

/// The rest of an object, and the fields of the type that were not seen yet.
struct Fields<'r, 'de> {
    reader: &'r mut CompactReader<'de>,
    names: &'static [&'static str],
    is_first: bool,
}

impl<'de> MapAccess<'de> for Fields<'_, 'de> {
    type Error = OtherForm;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, OtherForm> {
        let is_first = std::mem::take(&mut self.is_first);
        if is_first && self.reader.skip("}") {
            return Ok(None);
        }
        if !is_first && !self.reader.skip(",") {
            return self.reader.expect(b'}').map(|()| None);
        }
        // Fields before the one that comes next are absent.
        while let Some((name, later)) = self.names.split_first() {
            self.names = later;
            if self.reader.skip_key(name) {
                return seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some);
            }
        }
        Err(OtherForm)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, OtherForm> {
        seed.deserialize(&mut *self.reader)
    }
}

/// A variant without fields.
struct Word<'de>(&'de str);

impl<'de> EnumAccess<'de> for Word<'de> {
    type Error = OtherForm;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), OtherForm> {
        let variant = seed.deserialize(BorrowedStrDeserializer::new(self.0))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Word<'de> {
    type Error = OtherForm;

    fn unit_variant(self) -> Result<(), OtherForm> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, OtherForm> {
        Err(OtherForm)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, OtherForm> {
        Err(OtherForm)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, OtherForm> {
        Err(OtherForm)
    }
}

impl std::error::Error for OtherForm {}

impl fmt::Display for OtherForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not in the form that a server writes")
    }
}

impl serde::de::Error for OtherForm {
    /// Never shown: `serde_json` reads the text again, and reports its own errors.
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Colour {
        Red,
        DarkBlue,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Sample<'a> {
        small: Option<u16>,
        #[serde(borrow)]
        text: &'a str,
        number: i64,
        flag: Option<bool>,
        colour: Colour,
        #[serde(default)]
        list: Vec<i64>,
    }

    const COMPACT: &str =
        r#"{"small":7,"text":"né","number":-12,"flag":null,"colour":"dark_blue","list":[1,0,-3]}"#;

    #[test]
    fn the_form_of_a_server_is_read_at_once() {
        let sample: Sample<'_> = read_compact(COMPACT).unwrap();
        assert_eq!(sample, serde_json::from_str(COMPACT).unwrap());
        let absent = r#"{"text":"","number":999999999999999999,"colour":"red"}"#;
        let sample: Sample<'_> = read_compact(absent).unwrap();
        assert_eq!(sample, serde_json::from_str(absent).unwrap());
        assert_eq!(read_compact::<Vec<i64>>("[]"), Some(Vec::new()));
    }

    #[test]
    fn other_forms_are_left_to_the_general_reader() {
        let others = [
            (r#" {"text":"a","number":1,"colour":"red"}"#, true),
            (r#"{"text":"a", "number":1,"colour":"red"}"#, true),
            (r#"{"number":1,"text":"a","colour":"red"}"#, true),
            (r#"{"text":"a","number":1,"colour":"red","new":{"a":[1.5]}}"#, true),
            (r#"{"text":"a","number":1,"colour":"red"}x"#, false),
            (r#"{"text":"a","number":1,"colour":"red",}"#, false),
            (r#"{"text":"a","number":01,"colour":"red"}"#, false),
            (r#"{"text":"a","number":1.5,"colour":"red"}"#, false),
            (r#"{"text":"a","number":1e3,"colour":"red"}"#, false),
            (r#"{"text":"a","number":-,"colour":"red"}"#, false),
            (r#"{"text":"a","number":1,"text":"b","colour":"red"}"#, false),
            (r#"{"text":"a","number":1,"colour":"green"}"#, false),
            (r#"{"small":65536,"text":"a","number":1,"colour":"red"}"#, false),
            ("{\"text\":\"a\nb\",\"number\":1,\"colour\":\"red\"}", false),
            (r#"{"text":"a"#, false),
            (r#"{"text":"#, false),
            ("", false),
        ];
        for (text, is_valid) in others {
            assert_eq!(read_compact::<Sample<'_>>(text), None, "{text}");
            let general = serde_json::from_str::<Sample<'_>>(text);
            assert_eq!(general.is_ok(), is_valid, "{text}: {general:?}");
            assert_eq!(read_json::<Sample<'_>>(text).ok(), general.ok(), "{text}");
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_has_the_result_of_the_general_reader() {
        let general = |text: &str| format!("{:?}", serde_json::from_str::<Sample<'_>>(text).ok());
        let ours = |text: &str| format!("{:?}", read_json::<Sample<'_>>(text).ok());
        for end in (0..COMPACT.len()).filter(|end| COMPACT.is_char_boundary(*end)) {
            assert_eq!(ours(&COMPACT[..end]), general(&COMPACT[..end]));
        }
        for index in 0..COMPACT.len() {
            for byte in b"\"\\{}[],:-019.e \ntnax".iter().copied() {
                let mut bytes = COMPACT.as_bytes().to_vec();
                bytes[index] = byte;
                let Ok(text) = String::from_utf8(bytes) else { continue };
                assert_eq!(ours(&text), general(&text), "{text}");
            }
        }
    }
}
