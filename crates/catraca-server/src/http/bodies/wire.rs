//! Request bodies as serde types: borrowed from the body, unknown fields refused. The library never
//! sees these types.

#[cfg(test)]
mod client_bodies;
mod object;
mod outcome_body_text;
mod outcome_headers;
mod subject;

use std::borrow::Cow;
use std::collections::BTreeMap;

use catraca::Outcome;
use catraca::core::outcome::OutcomeBody;
use catraca::core::request::{COST_MAX, NAME_BYTES_MAX, STATUSES};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::value::RawValue;

use crate::http::bodies::problem::Problem;

pub use object::JsonObject;
pub use subject::{OwnedSubject, WireSubject};

/// A check. In a batch, a check whose gate, `ref` or cost is out of bounds is a problem in its own
/// position, so the schema states these bounds only in words.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Check")]
pub struct WireCheck<'a> {
    /// The gate, or a policy as a gate of its own: 1 to 256 bytes.
    #[serde(borrow)]
    #[schemars(example = &"login")]
    pub gate: Cow<'a, str>,
    /// The attributes of the caller.
    #[serde(borrow, default)]
    pub subject: WireSubject<'a>,
    /// Units to charge or to hold, from 0 to 2^40; by default what the policy says, or 1.
    #[schemars(example = 1)]
    pub cost: Option<i64>,
    /// A name under which the check is remembered, to settle or credit it later: 1 to 256 bytes.
    #[serde(borrow)]
    pub r#ref: Option<Cow<'a, str>>,
    /// Whether the allowlist and the blocklist apply; true by default.
    pub lists: Option<bool>,
}

/// The outcome of an allowed check, which is named by `ticket`, or by `ref` and `subject`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Settle", example = serde_json::json!({
    "ref": "E1234567820260101000012345678901",
    "subject": { "participant": "12345678", "payer": "52998224725" },
    "outcome": { "status": 404 },
}))]
pub struct WireSettle<'a> {
    /// The ticket of the decision, unchanged.
    #[serde(borrow)]
    pub ticket: Option<Cow<'a, str>>,
    /// The `ref` of the check.
    #[serde(borrow)]
    pub r#ref: Option<Cow<'a, str>>,
    /// The subject of the check, if it is named by `ref`.
    #[serde(borrow, default)]
    pub subject: WireSubject<'a>,
    /// What the upstream responded.
    #[serde(borrow, deserialize_with = "object")]
    pub outcome: WireOutcome<'a>,
}

/// What the upstream responded, as far as prices and ban rules read it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Outcome")]
pub struct WireOutcome<'a> {
    /// The HTTP status of the response.
    #[schemars(range(min = *STATUSES.start(), max = *STATUSES.end()), example = 404)]
    pub status: Option<u16>,
    /// The body of the response, if a ban rule reads it: any JSON. Rules see one that repeats a
    /// key, or has a number or a text that cannot be represented, as null with `body_invalid`.
    #[serde(borrow, default)]
    #[schemars(with = "serde_json::Value")]
    pub body: Option<&'a RawValue>,
    /// The body of the response as text, instead of `body`, if it may not be JSON. Rules see a text
    /// that is not readable as JSON as null with `body_invalid`.
    #[serde(borrow, default)]
    #[schemars(with = "Option<String>")]
    pub body_text: Option<&'a RawValue>,
    /// The headers of the response, if a ban rule reads them.
    #[serde(default, deserialize_with = "outcome_headers::read")]
    pub headers: BTreeMap<String, String>,
    /// The amount, for policies whose cost is `reported`.
    #[schemars(range(min = 0, max = COST_MAX))]
    pub cost: Option<i64>,
}

/// A late event, such as a payment, that returns units to a bucket.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Credit", example = serde_json::json!({
    "ref": "E1234567820260101000012345678901", "event": "payment",
    "subject": { "participant": "12345678", "payer": "52998224725" },
}))]
pub struct WireCredit<'a> {
    /// The `ref` of the check.
    #[serde(borrow)]
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    pub r#ref: Cow<'a, str>,
    /// The event, as named in `credit` of the policy.
    #[serde(borrow)]
    #[schemars(example = &"payment")]
    pub event: Cow<'a, str>,
    /// The subject of the check.
    #[serde(borrow)]
    pub subject: WireSubject<'a>,
}

/// The subject whose buckets are shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BucketsOf", example = serde_json::json!({
    "subject": { "participant": "12345678", "payer": "52998224725" },
}))]
pub struct WireBuckets<'a> {
    /// The attributes of the caller.
    #[serde(borrow)]
    pub subject: WireSubject<'a>,
}

impl WireOutcome<'_> {
    /// The outcome of a settle. A body of more than `body_bytes_max` bytes, or one that is not
    /// readable as JSON, is left out; ban rules then see which of the two. The upstream chooses its
    /// body, so a refusal of the settle would let it evade the rules.
    pub fn read(self, body_bytes_max: usize) -> Result<Outcome, Problem> {
        let body = match (self.body.map(RawValue::get), self.body_text.map(RawValue::get)) {
            (None, None) => OutcomeBody::default(),
            (Some(json), None) => OutcomeBody::from_json(json.as_bytes(), body_bytes_max),
            (None, Some(raw)) => outcome_body_text::read(raw, body_bytes_max)?,
            (Some(_), Some(_)) => {
                let detail = "`outcome` has both `body` and `body_text`; send one of them";
                return Err(Problem::bad("bad-settle", detail));
            }
        };
        let outcome = Outcome {
            status: self.status,
            headers: self.headers.into_iter().collect(),
            cost: self.cost,
            ..Outcome::default()
        };
        Ok(outcome.with_body(body))
    }
}

/// Parses a body that is a JSON object; the problem has line and column.
pub fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    let JsonObject(value) = parse(body)?;
    Ok(value)
}

/// Parses a body that is a JSON list of objects.
pub fn read_list<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<Vec<T>, Problem> {
    let list: Vec<JsonObject<T>> = parse(body)?;
    Ok(list.into_iter().map(|JsonObject(value)| value).collect())
}

/// For `deserialize_with`: a field that must be an object.
pub fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    JsonObject::deserialize(deserializer).map(|JsonObject(value)| value)
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    if body.is_empty() {
        return Err(Problem::bad("bad-json", "the body is empty; send an object as JSON"));
    }
    serde_json::from_slice(body).map_err(|error| Problem::from_json_error(&error))
}

/// Whether a body is a JSON list, by its first character.
pub fn is_list(body: &[u8]) -> bool {
    body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}
