//! A JSON line of a log, walked once: what is not asked for is skipped, not kept.
//!
//! Must not fail on what it does not need.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::event::{Text, said};
use super::fields::{Node, Slot};
use super::leaf::Leaf;
use super::{Headers, Logged, origin_form, request_line};

/// What was found so far, each with the rank of its place.
#[derive(Default)]
struct Found<'a> {
    time: Ranked<'a>,
    ip: Ranked<'a>,
    method: Ranked<'a>,
    target: Ranked<'a>,
    request: Ranked<'a>,
    status: Ranked<'a>,
    headers: Headers<'a>,
}

type Ranked<'a> = Option<(u8, Leaf<'a>)>;

/// Reads a line.
pub fn read<'a>(line: &'a [u8], tree: &Node) -> Result<Logged<'a>, String> {
    let mut found = Found::default();
    let mut json = serde_json::Deserializer::from_slice(line);
    Walk { node: tree, found: &mut found }.deserialize(&mut json).map_err(said)?;
    json.end().map_err(said)?;
    found.logged()
}

impl<'a> Found<'a> {
    fn put(&mut self, slot: &Slot, rank: u8, leaf: Leaf<'a>) {
        let place = match slot {
            Slot::Time => &mut self.time,
            Slot::Ip => &mut self.ip,
            Slot::Method => &mut self.method,
            Slot::Target => &mut self.target,
            Slot::Request => &mut self.request,
            Slot::Status => &mut self.status,
            Slot::Header(name) => {
                if let Leaf::Text(value) = leaf {
                    self.headers.push((name.clone().into(), value));
                }
                return;
            }
        };
        if place.as_ref().is_none_or(|(known, _)| rank < *known) {
            *place = Some((rank, leaf));
        }
    }

    fn logged(self) -> Result<Logged<'a>, String> {
        let time = self.time.ok_or_else(|| missing("time"))?.1.time()?;
        let ip = self.ip.ok_or_else(|| missing("ip"))?.1.text("address")?;
        let status = self.status.map_or(Ok(None), |(_, leaf)| leaf.status())?;
        let request = match (self.method, self.target, self.request) {
            (Some((_, method)), Some((_, target)), _) => {
                Some((method.text("method")?, relative(target.text("target")?)))
            }
            (_, _, Some((_, request))) => split(request.text("request")?),
            _ => return Err(missing("method` and `uri")),
        };
        Ok(Logged { time, ip, request, status, headers: self.headers })
    }
}

fn relative(target: Cow<'_, str>) -> Cow<'_, str> {
    match target {
        Cow::Borrowed(text) => origin_form(text).into(),
        Cow::Owned(text) => origin_form(&text).to_owned().into(),
    }
}

fn split(request: Cow<'_, str>) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    match request {
        Cow::Borrowed(text) => request_line(text).map(|(m, t)| (m.into(), t.into())),
        Cow::Owned(text) => {
            request_line(&text).map(|(m, t)| (m.to_owned().into(), t.to_owned().into()))
        }
    }
}

fn missing(name: &str) -> String {
    format!("no `{name}` where logs usually have it; say where with --field NAME=PATH")
}

/// Walks a value along the tree.
struct Walk<'n, 'f, 'de> {
    node: &'n Node,
    found: &'f mut Found<'de>,
}

impl<'de> Walk<'_, '_, 'de> {
    fn take<E>(self, leaf: Leaf<'de>) -> Result<(), E> {
        if let Some((slot, rank)) = &self.node.takes {
            self.found.put(slot, *rank, leaf);
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Text<'de>>()? {
            match self.node.child(&name) {
                Some(node) => map.next_value_seed(Walk { node, found: &mut *self.found })?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    /// Every item stands where its list does: a header's values, in order.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Walk { node: self.node, found: &mut *self.found })?.is_some() {}
        Ok(())
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<(), E> {
        self.take(Leaf::Text(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.take(Leaf::Text(text.to_owned().into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.take(Leaf::Number(number as f64))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.take(Leaf::Number(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.take(Leaf::Number(number))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}
