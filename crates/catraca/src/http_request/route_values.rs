//! What a route reads from a request: attributes, the reference and the cost of its check.

use std::borrow::Cow;

use catraca_core::catalog::{
    AttributeSource, Catalog, CertificateField, RequiredPart, Route, RouteCost, RouteCostTerm,
};
use catraca_core::json_path::scalar_text;
use catraca_core::outcome::OutcomeBody;
use catraca_core::policy::Name;
use catraca_core::refusal::Refusal;
use catraca_core::request::{COST_MAX, validate_cost};
use catraca_core::route::{CanonicalPath, cookie_once, is_read_as};
use http::{HeaderMap, header};

use super::request_error::RequestError;
use super::request_parts::{RequestBody, RequestParts};
use super::{AmbiguousValue, header_once};

/// What a route reads from a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteValues {
    /// The attributes that the request has.
    pub attributes: Vec<(Name, String)>,
    /// The reference of the check.
    pub reference: Option<String>,
    /// The units that the check asks for.
    pub cost: Option<i64>,
    /// Whether the check skips the allowlist and the blocklist.
    pub skips_lists: bool,
}

impl RouteValues {
    /// The gate that the route chooses for these values.
    pub fn gate<'r>(&self, catalog: &Catalog, route: &'r Route) -> Result<&'r Name, Refusal> {
        route.gate_for(catalog, |name| {
            let found = self.attributes.iter().find(|(own, _)| **own == *name);
            found.map(|(_, value)| value.as_str())
        })
    }
}

impl RequestParts<'_> {
    /// Reads everything that the check of a request needs. `path` is that of the matching route.
    pub fn read(&self, route: &Route, path: &CanonicalPath) -> Result<RouteValues, RequestError> {
        let body = if route.reads_body() { self.json_body()? } else { serde_json::Value::Null };
        let reader = SourceReader { parts: self, path, body: &body };
        for required in &route.required {
            reader.check_required(required)?;
        }
        let mut values = RouteValues { skips_lists: !route.lists, ..RouteValues::default() };
        for (name, source) in &route.set {
            if values.attributes.iter().any(|(own, _)| own == name) {
                continue;
            }
            let value = reader.value(source)?.filter(|value| !value.is_empty());
            values.attributes.extend(value.map(|value| (name.clone(), value)));
        }
        if let Some(source) = &route.reference {
            values.reference = reader.value(source)?.filter(|text| !text.is_empty());
        }
        if let Some(cost) = &route.cost {
            values.cost = reader.cost(cost)?;
        }
        Ok(values)
    }

    /// The body as JSON; null if it is empty.
    fn json_body(&self) -> Result<serde_json::Value, RequestError> {
        let bytes = match self.body {
            RequestBody::Unread => return Err(RequestError::BodyUnread),
            RequestBody::Uncollected { .. } => return Err(RequestError::BodyTooLarge),
            RequestBody::Whole([]) => return Ok(serde_json::Value::Null),
            RequestBody::Whole(bytes) => bytes,
        };
        if !states_json(self.headers)? {
            return Err(RequestError::BodyType);
        }
        let body = OutcomeBody::from_json(bytes, bytes.len());
        match body.is_invalid {
            true => Err(RequestError::BodyInvalid),
            false => Ok(body.value),
        }
    }
}

/// Reads single parts of a request.
struct SourceReader<'a> {
    parts: &'a RequestParts<'a>,
    path: &'a CanonicalPath,
    body: &'a serde_json::Value,
}

impl SourceReader<'_> {
    fn value(&self, source: &AttributeSource) -> Result<Option<String>, RequestError> {
        let headers = self.parts.headers;
        Ok(match source {
            AttributeSource::Header(name) => header_once(headers, name)?.map(str::to_owned),
            AttributeSource::Cookie(name) => self.cookie_once(name)?,
            AttributeSource::Query(name) => query_once(self.parts.query(), name)?,
            AttributeSource::Segment(number) => {
                let index = number.checked_sub(1);
                index.and_then(|index| self.path.segments.get(index)).cloned()
            }
            AttributeSource::Body(path) => {
                if path.has_second_spelling(self.body) {
                    return Err(RequestError::BodyInvalid);
                }
                json_text(source, path.find(self.body))?
            }
            AttributeSource::Claim(name) => json_text(source, self.parts.claim(name))?,
            AttributeSource::Certificate(field) => self.certificate_field(*field),
            AttributeSource::Literal(text) => Some(text.clone()),
        })
    }

    fn certificate_field(&self, field: CertificateField) -> Option<String> {
        let certificate = self.parts.certificate?;
        match field {
            CertificateField::Subject => Some(certificate.subject.clone()),
            CertificateField::Fingerprint => Some(certificate.fingerprint.clone()),
            CertificateField::AlternativeName => certificate.alternative_names.first().cloned(),
        }
    }

    /// The value of a cookie that must be sent at most once. A client may send several lines.
    fn cookie_once(&self, name: &str) -> Result<Option<String>, RequestError> {
        let ambiguous = || AmbiguousValue::Cookie { name: name.to_owned() };
        let mut found = None;
        for line in self.parts.headers.get_all(header::COOKIE) {
            let line = line.to_str().map_err(|_| ambiguous())?;
            let value = cookie_once(line, name).map_err(|_| ambiguous())?.map(Cow::into_owned);
            if value.is_some() && found.is_some() {
                return Err(ambiguous().into());
            }
            found = found.or(value);
        }
        Ok(found)
    }

    fn cost(&self, cost: &RouteCost) -> Result<Option<i64>, RequestError> {
        cost.sum(|term| {
            let units = match term {
                RouteCostTerm::Units(units) => Some(*units),
                RouteCostTerm::BytesPerUnit(bytes) => Some(self.units_of_bytes(*bytes)?),
                RouteCostTerm::Parts(parts) => parts.units(|source| self.number(source))?,
            };
            units.map_or(Ok(()), validate_cost)?;
            Ok(units)
        })
    }

    /// The number in a part of the request.
    fn number(&self, source: &AttributeSource) -> Result<Option<i64>, RequestError> {
        let Some(text) = self.value(source)? else { return Ok(None) };
        text.trim().parse().map(Some).map_err(|_| not_a_number(source))
    }

    /// Refuses a request that lacks a part without which it cannot be counted. Servers read many
    /// values as true, so every value but `false` counts as one.
    fn check_required(&self, required: &RequiredPart) -> Result<(), RequestError> {
        let is_concerned = self.value(&required.when)?.is_some_and(|value| value != "false");
        if is_concerned && self.value(&required.part)?.as_deref() != Some("true") {
            return Err(RequestError::PartMissing {
                part: required.part.to_string(),
                when: required.when.to_string(),
            });
        }
        Ok(())
    }

    /// The units of the body, rounded up.
    fn units_of_bytes(&self, bytes_per_unit: i64) -> Result<i64, RequestError> {
        let length = match self.parts.body {
            RequestBody::Unread => return Err(RequestError::BodyUnread),
            RequestBody::Whole(bytes) => bytes.len() as u64,
            RequestBody::Uncollected { length } => length,
        };
        let units = length.div_ceil(bytes_per_unit.max(1).unsigned_abs());
        Ok(i64::try_from(units).unwrap_or(COST_MAX).min(COST_MAX))
    }
}

/// Whether the headers say that the body is JSON in UTF-8, or nothing about it. An upstream would
/// read a form or a compressed body in another way than the rules.
fn states_json(headers: &HeaderMap) -> Result<bool, RequestError> {
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Ok(false);
    }
    let Some(stated) = header_once(headers, header::CONTENT_TYPE.as_str())? else {
        return Ok(true);
    };
    let stated = stated.to_ascii_lowercase();
    let mut parts = stated.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default();
    let is_json = media_type == "application/json"
        || (media_type.starts_with("application/") && media_type.ends_with("+json"));
    let is_utf8 = |part: &str| match part.strip_prefix("charset=") {
        Some(charset) => charset.trim_matches('"') == "utf-8",
        None => true,
    };
    Ok(is_json && parts.all(is_utf8))
}

/// The text of a field that has one spelling.
fn json_text(
    source: &AttributeSource,
    found: Option<&serde_json::Value>,
) -> Result<Option<String>, RequestError> {
    let Some(found) = found else { return Ok(None) };
    let text = scalar_text(found).ok_or_else(|| RequestError::BadValue {
        source_text: source.to_string(),
        wanted: "a text, a whole number or a boolean",
    })?;
    Ok(Some(text))
}

fn not_a_number(source: &AttributeSource) -> RequestError {
    RequestError::BadValue { source_text: source.to_string(), wanted: "a whole number" }
}

/// The value of a query parameter that must be sent at most once, in one spelling. Some servers
/// split the query at `;` too.
fn query_once(query: &str, wanted: &str) -> Result<Option<String>, AmbiguousValue> {
    let mut found = None;
    for part in query.split('&') {
        let is_wanted = |piece: &str| {
            let pair = form_urlencoded::parse(piece.as_bytes()).next();
            pair.is_some_and(|(name, _)| is_read_as(&name, wanted))
        };
        if !part.split(';').any(is_wanted) {
            continue;
        }
        let pair = form_urlencoded::parse(part.as_bytes()).next();
        let pair = pair.filter(|(name, _)| name == wanted && !part.contains(';'));
        let value = pair.filter(|_| found.is_none()).map(|(_, value)| value.into_owned());
        let ambiguous = || AmbiguousValue::Query { name: wanted.to_owned() };
        found = Some(value.ok_or_else(ambiguous)?);
    }
    Ok(found)
}
