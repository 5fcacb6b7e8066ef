//! Deserializes JSON objects strictly: an unknown or repeated field is an error that names it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::EventAttributes;
use super::text::EventText;

/// The fields of an object.
pub trait EventFields<'de>: Default {
    /// The name of the object in errors.
    const OWNER: &'static str;
    /// The names of its fields in errors.
    const KNOWN: &'static str;

    /// Reads the value of the field `name`; `None` if there is no such field.
    fn take<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<Option<()>, A::Error>;
}

/// An object that accepts only the fields of `T`.
#[derive(Debug)]
pub struct EventObject<T>(pub T);

impl<'de, T: EventFields<'de>> Deserialize<'de> for EventObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: EventFields<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = EventObject<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if T::OWNER.starts_with('`') {
            return write!(f, "an object for {}", T::OWNER);
        }
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = T::default();
        while let Some(name) = map.next_key::<EventText<'de>>()? {
            if fields.take(&name, &mut map)?.is_none() {
                let name = &*name;
                let owner = T::OWNER;
                let known = T::KNOWN;
                let error = format_args!("unknown field `{name}`: {owner} takes {known}");
                return Err(Error::custom(error));
            }
        }
        Ok(EventObject(fields))
    }
}

/// Reads a scalar field, and adds its name to errors. Null is the same as a missing field.
pub fn scalar<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut A,
    name: &str,
    slot: &mut Option<T>,
) -> Result<Option<()>, A::Error> {
    refuse_repeated(name, slot)?;
    let value = map.next_value::<Option<T>>();
    *slot = value.map_err(|error| Error::custom(format_args!("`{name}`: {error}")))?;
    Ok(Some(()))
}

/// Reads an object field; the object's own errors name it.
pub fn object<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut A,
    name: &str,
    slot: &mut Option<T>,
) -> Result<Option<()>, A::Error> {
    refuse_repeated(name, slot)?;
    *slot = map.next_value::<Option<T>>()?;
    Ok(Some(()))
}

fn refuse_repeated<T, E: Error>(name: &str, slot: &Option<T>) -> Result<(), E> {
    match slot {
        Some(_) => Err(E::custom(format_args!("`{name}` is given twice"))),
        None => Ok(()),
    }
}

/// An object with any keys and text values: a subject, or headers.
#[derive(Debug)]
pub struct Pairs<'a>(pub EventAttributes<'a>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
        let mut pairs: EventAttributes<'de> = EventAttributes::new();
        while let Some(name) = map.next_key::<EventText<'de>>()? {
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(Error::custom(format_args!("`{}` is given twice", &*name)));
            }
            let value = map.next_value::<EventText<'de>>();
            let value =
                value.map_err(|error| Error::custom(format_args!("`{}`: {error}", &*name)))?;
            pairs.push((name, value));
        }
        Ok(Pairs(pairs))
    }
}
