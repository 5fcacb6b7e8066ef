//! The shapes of requests: strict, borrowed from the body, unknown fields refused.
//!
//! Must stay in this front end: the domain never sees these types.

mod exact;
mod subject;

use std::borrow::Cow;
use std::collections::BTreeMap;

use catraca::Outcome;
use serde::Deserialize;

use super::problem::Problem;

pub use subject::{OwnedSubject, WireSubject};

/// The most checks in one list.
pub const LIST_MAX: usize = 100;

/// `POST /v1/check` and `/v1/peek`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireCheck<'a> {
    /// The gate or policy.
    #[serde(borrow)]
    pub gate: Cow<'a, str>,
    /// Who asks.
    #[serde(borrow, default)]
    pub subject: WireSubject<'a>,
    /// Units.
    pub cost: Option<i64>,
    /// A name for later.
    #[serde(borrow)]
    pub r#ref: Option<Cow<'a, str>>,
    /// Whether lists are looked at.
    pub lists: Option<bool>,
}

/// `POST /v1/settle`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireSettle<'a> {
    /// Which check, by ticket.
    #[serde(borrow)]
    pub ticket: Option<Cow<'a, str>>,
    /// Which check, by reference.
    #[serde(borrow)]
    pub r#ref: Option<Cow<'a, str>>,
    /// Whose, with a reference.
    #[serde(borrow, default)]
    pub subject: WireSubject<'a>,
    /// What happened.
    pub outcome: WireOutcome,
}

/// What happened.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireOutcome {
    /// The status.
    pub status: Option<u16>,
    /// The answer's body.
    #[serde(default, deserialize_with = "exact::value")]
    pub body: serde_json::Value,
    /// The answer's headers.
    #[serde(default, deserialize_with = "exact::headers")]
    pub headers: BTreeMap<String, String>,
    /// The reported amount.
    pub cost: Option<i64>,
}

/// `POST /v1/credit`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireCredit<'a> {
    /// The check's reference.
    #[serde(borrow)]
    pub r#ref: Cow<'a, str>,
    /// What happened.
    #[serde(borrow)]
    pub event: Cow<'a, str>,
    /// Whose.
    #[serde(borrow)]
    pub subject: WireSubject<'a>,
}

/// `POST /v1/buckets`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireBuckets<'a> {
    /// Whose.
    #[serde(borrow)]
    pub subject: WireSubject<'a>,
}

impl From<WireOutcome> for Outcome {
    fn from(wire: WireOutcome) -> Self {
        let headers = wire.headers.into_iter().collect();
        Self { status: wire.status, body: wire.body, headers, cost: wire.cost }
    }
}

/// Reads a JSON body; the problem says where and what.
pub fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    if body.is_empty() {
        return Err(Problem::bad("bad-json", "the body is empty; send an object as JSON"));
    }
    serde_json::from_slice(body).map_err(|error| Problem::of_json(&error))
}

/// Whether a body is a list.
pub fn is_list(body: &[u8]) -> bool {
    body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}
