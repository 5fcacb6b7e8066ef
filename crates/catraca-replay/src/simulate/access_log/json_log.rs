//! Parses a line of a JSON log in one pass; fields that are not needed are skipped.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::event::{EventText, json_error_text};
use super::fields::PathTree;
use super::json_scalar::JsonScalar;
use super::log_field::LogField;
use super::{LogHeaders, LogRequest, origin_form, request_line};

/// The values found so far, each with the rank of its path.
#[derive(Default)]
struct FieldValues<'a> {
    time: RankedValue<'a>,
    ip: RankedValue<'a>,
    method: RankedValue<'a>,
    target: RankedValue<'a>,
    request: RankedValue<'a>,
    status: RankedValue<'a>,
    headers: LogHeaders<'a>,
}

type RankedValue<'a> = Option<(u8, JsonScalar<'a>)>;

/// Parses a line.
pub fn read<'a>(line: &'a [u8], tree: &PathTree) -> Result<LogRequest<'a>, String> {
    let mut values = FieldValues::default();
    let mut json = serde_json::Deserializer::from_slice(line);
    TreeVisitor { node: tree, values: &mut values }
        .deserialize(&mut json)
        .map_err(json_error_text)?;
    json.end().map_err(json_error_text)?;
    values.into_request()
}

impl<'a> FieldValues<'a> {
    fn put(&mut self, field: &LogField, rank: u8, scalar: JsonScalar<'a>) {
        let value = match field {
            LogField::Time => &mut self.time,
            LogField::Ip => &mut self.ip,
            LogField::Method => &mut self.method,
            LogField::Target => &mut self.target,
            LogField::Request => &mut self.request,
            LogField::Status => &mut self.status,
            LogField::Header(name) => {
                if let JsonScalar::Text(value) = scalar {
                    self.headers.push((name.clone().into(), value));
                }
                return;
            }
        };
        if value.as_ref().is_none_or(|(known_rank, _)| rank < *known_rank) {
            *value = Some((rank, scalar));
        }
    }

    fn into_request(self) -> Result<LogRequest<'a>, String> {
        let time = self.time.ok_or_else(|| missing("time"))?.1.time()?;
        let ip = self.ip.ok_or_else(|| missing("ip"))?.1.text("address")?;
        let status = self.status.map_or(Ok(None), |(_, scalar)| scalar.status())?;
        let request = match (self.method, self.target, self.request) {
            (Some((_, method)), Some((_, target)), _) => {
                Some((method.text("method")?, origin_form_of(target.text("target")?)))
            }
            (_, _, Some((_, request))) => split_request(request.text("request")?),
            _ => return Err(missing("method` and `uri")),
        };
        Ok(LogRequest { time, ip, request, status, headers: self.headers })
    }
}

fn origin_form_of(target: Cow<'_, str>) -> Cow<'_, str> {
    match target {
        Cow::Borrowed(text) => origin_form(text).into(),
        Cow::Owned(text) => origin_form(&text).to_owned().into(),
    }
}

fn split_request(request: Cow<'_, str>) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    match request {
        Cow::Borrowed(text) => request_line(text).map(|(m, t)| (m.into(), t.into())),
        Cow::Owned(text) => {
            request_line(&text).map(|(m, t)| (m.to_owned().into(), t.to_owned().into()))
        }
    }
}

fn missing(name: &str) -> String {
    format!("`{name}` not found at the default paths; set its path with --field NAME=PATH")
}

/// Visits a value along the tree of paths.
struct TreeVisitor<'n, 'f, 'de> {
    node: &'n PathTree,
    values: &'f mut FieldValues<'de>,
}

impl<'de> TreeVisitor<'_, '_, 'de> {
    fn take<E>(self, scalar: JsonScalar<'de>) -> Result<(), E> {
        if let Some((field, rank)) = &self.node.field {
            self.values.put(field, *rank, scalar);
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for TreeVisitor<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TreeVisitor<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<EventText<'de>>()? {
            match self.node.child(&name) {
                Some(node) => {
                    map.next_value_seed(TreeVisitor { node, values: &mut *self.values })?
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    /// The items of a list have the path of the list, as for headers in Caddy's log.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq
            .next_element_seed(TreeVisitor { node: self.node, values: &mut *self.values })?
            .is_some()
        {}
        Ok(())
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<(), E> {
        self.take(JsonScalar::Text(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.take(JsonScalar::Text(text.to_owned().into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.take(JsonScalar::Number(number as f64))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.take(JsonScalar::Number(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.take(JsonScalar::Number(number))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}
