//! The shapes of requests: strict, borrowed from the body, unknown fields refused.
//!
//! Must stay in this front end: the domain never sees these types.

mod exact;
mod object;
mod subject;

use std::borrow::Cow;
use std::collections::BTreeMap;

use catraca::Outcome;
use catraca::core::outcome::BodySize;
use catraca::core::request::{COST_MAX, NAME_BYTES_MAX, STATUSES};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::value::RawValue;

use super::problem::Problem;

pub use object::Object;
pub use subject::{OwnedSubject, WireSubject};

/// The most checks in one list.
pub const LIST_MAX: usize = 100;

/// May this caller pass? In a list, a check whose name or cost is out of bounds is a problem in its
/// own place, so the bounds are told in words.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Check")]
pub struct WireCheck<'a> {
    /// The gate, or a policy as a gate of its own: 1 to 256 bytes.
    #[serde(borrow)]
    #[schemars(example = &"login")]
    pub gate: Cow<'a, str>,
    /// Who asks.
    #[serde(borrow, default)]
    pub subject: WireSubject<'a>,
    /// Units to charge or to hold, from 0 to 2^40; 1 unless the policy says otherwise.
    #[schemars(example = 1)]
    pub cost: Option<i64>,
    /// A name under which the check is remembered, to settle or credit it later: 1 to 256 bytes.
    #[serde(borrow)]
    pub r#ref: Option<Cow<'a, str>>,
    /// Whether the allowlist and the blocklist are looked at; they are unless this is false.
    pub lists: Option<bool>,
}

/// What a check that passed came to. Names it by `ticket`, or by `ref` and `subject`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Settle", example = serde_json::json!({
    "ref": "E1234567820260101000012345678901",
    "subject": { "participant": "12345678", "payer": "52998224725" },
    "outcome": { "status": 404 },
}))]
pub struct WireSettle<'a> {
    /// The decision's ticket, unchanged.
    #[serde(borrow)]
    pub ticket: Option<Cow<'a, str>>,
    /// The check's `ref`.
    #[serde(borrow)]
    pub r#ref: Option<Cow<'a, str>>,
    /// The check's subject, with a `ref`.
    #[serde(borrow, default)]
    pub subject: WireSubject<'a>,
    /// What happened.
    #[serde(borrow, deserialize_with = "object")]
    pub outcome: WireOutcome<'a>,
}

/// What happened: what prices and ban rules read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Outcome")]
pub struct WireOutcome<'a> {
    /// The answer's HTTP status.
    #[schemars(range(min = *STATUSES.start(), max = *STATUSES.end()), example = 404)]
    pub status: Option<u16>,
    /// The answer's body, if a ban rule reads it: any JSON.
    #[serde(borrow, default)]
    #[schemars(with = "serde_json::Value")]
    pub body: Option<&'a RawValue>,
    /// The answer's headers, if a ban rule reads them.
    #[serde(default, deserialize_with = "exact::headers")]
    pub headers: BTreeMap<String, String>,
    /// The amount, for policies whose cost is `reported`.
    #[schemars(range(min = 0, max = COST_MAX))]
    pub cost: Option<i64>,
}

/// A late event, such as a payment, that gives back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Credit", example = serde_json::json!({
    "ref": "E1234567820260101000012345678901", "event": "payment",
    "subject": { "participant": "12345678", "payer": "52998224725" },
}))]
pub struct WireCredit<'a> {
    /// The check's `ref`.
    #[serde(borrow)]
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    pub r#ref: Cow<'a, str>,
    /// What happened, by the name that the policy's `credit` gives it.
    #[serde(borrow)]
    #[schemars(example = &"payment")]
    pub event: Cow<'a, str>,
    /// The check's subject.
    #[serde(borrow)]
    pub subject: WireSubject<'a>,
}

/// Whose buckets.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BucketsOf", example = serde_json::json!({
    "subject": { "participant": "12345678", "payer": "52998224725" },
}))]
pub struct WireBuckets<'a> {
    /// Whose.
    #[serde(borrow)]
    pub subject: WireSubject<'a>,
}

impl WireOutcome<'_> {
    /// The outcome of a settle whose request was `request`. A body of more than `body_bytes_max`
    /// bytes is left out, and its JSON is only looked over.
    pub fn read(self, request: &[u8], body_bytes_max: usize) -> Result<Outcome, Problem> {
        let headers = self.headers.into_iter().collect();
        let (body, body_size) = match self.body.map(RawValue::get) {
            None => (serde_json::Value::Null, BodySize::Bytes(0)),
            Some(raw) if raw.len() > body_bytes_max => {
                (serde_json::Value::Null, BodySize::OverLimit)
            }
            Some(raw) => {
                let value = exact::value(&mut serde_json::Deserializer::from_str(raw));
                let value = value.map_err(|error| Problem::of_json_in(&error, raw, request))?;
                (value, BodySize::Bytes(raw.len()))
            }
        };
        Ok(Outcome { status: self.status, body, body_size, headers, cost: self.cost })
    }
}

/// Reads a JSON object; the problem says where and what.
pub fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    let Object(read) = parse(body)?;
    Ok(read)
}

/// Reads a JSON list of objects.
pub fn read_list<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<Vec<T>, Problem> {
    let list: Vec<Object<T>> = parse(body)?;
    Ok(list.into_iter().map(|Object(read)| read).collect())
}

/// Reads a field that is an object itself.
pub fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Object::deserialize(deserializer).map(|Object(read)| read)
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    if body.is_empty() {
        return Err(Problem::bad("bad-json", "the body is empty; send an object as JSON"));
    }
    serde_json::from_slice(body).map_err(|error| Problem::of_json(&error))
}

/// Whether a body is a list.
pub fn is_list(body: &[u8]) -> bool {
    body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}
