//! Strict objects: a field that is not known, or there twice, is an error that names it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::Attributes;
use super::text::Text;

/// What an object may hold.
pub trait Fields<'de>: Default {
    /// Who takes the fields, for errors.
    const OWNER: &'static str;
    /// The names of its fields, for errors.
    const KNOWN: &'static str;

    /// Takes the value of a field; `None` when there is no such field.
    fn take<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<Option<()>, A::Error>;
}

/// An object with exactly these fields.
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Fields<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Fields<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if T::OWNER.starts_with('`') {
            return write!(f, "an object for {}", T::OWNER);
        }
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = T::default();
        while let Some(name) = map.next_key::<Text<'de>>()? {
            if fields.take(&name, &mut map)?.is_none() {
                let (name, owner, known) = (&*name, T::OWNER, T::KNOWN);
                let what = format_args!("unknown field `{name}`: {owner} takes {known}");
                return Err(Error::custom(what));
            }
        }
        Ok(Object(fields))
    }
}

/// Takes a leaf, whose errors get its name. A null is as good as nothing.
pub fn leaf<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut A,
    name: &str,
    slot: &mut Option<T>,
) -> Result<Option<()>, A::Error> {
    once(name, slot)?;
    let value = map.next_value::<Option<T>>();
    *slot = value.map_err(|error| Error::custom(format_args!("`{name}`: {error}")))?;
    Ok(Some(()))
}

/// Takes an object, which names itself in its errors.
pub fn object<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut A,
    name: &str,
    slot: &mut Option<T>,
) -> Result<Option<()>, A::Error> {
    once(name, slot)?;
    *slot = map.next_value::<Option<T>>()?;
    Ok(Some(()))
}

fn once<T, E: Error>(name: &str, slot: &Option<T>) -> Result<(), E> {
    match slot {
        Some(_) => Err(E::custom(format_args!("`{name}` is there twice"))),
        None => Ok(()),
    }
}

/// An open map of texts: a subject, or headers.
#[derive(Debug)]
pub struct Pairs<'a>(pub Attributes<'a>);

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
        let mut pairs: Attributes<'de> = Attributes::new();
        while let Some(name) = map.next_key::<Text<'de>>()? {
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(Error::custom(format_args!("`{}` is there twice", &*name)));
            }
            let value = map.next_value::<Text<'de>>();
            let value =
                value.map_err(|error| Error::custom(format_args!("`{}`: {error}", &*name)))?;
            pairs.push((name, value));
        }
        Ok(Pairs(pairs))
    }
}
