//! JSON bodies of the requests, made from the library's values.

use bytes::Bytes;
use catraca_core::outcome::Outcome;
use catraca_core::request::Check;
use catraca_core::subject::Subject;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::engine::{CheckRef, Credit, Settle};

/// Most requests fit in it.
const TYPICAL_BYTES: usize = 256;

/// The body of a check or a peek.
#[derive(serde::Serialize)]
pub(super) struct CheckBody<'a> {
    gate: &'a str,
    subject: SubjectBody<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#ref: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lists: Option<bool>,
}

/// The body of a settle.
#[derive(serde::Serialize)]
pub(super) struct SettleBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#ref: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<SubjectBody<'a>>,
    outcome: OutcomeText<'a>,
}

#[derive(serde::Serialize)]
struct OutcomeText<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a serde_json::Value>,
    /// A body that is not JSON, so that ban rules see `body_invalid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_text: Option<&'static str>,
    #[serde(skip_serializing_if = "OutcomeHeaders::is_empty")]
    headers: OutcomeHeaders<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<i64>,
}

/// The body of a credit.
#[derive(serde::Serialize)]
pub(super) struct CreditRequestBody<'a> {
    r#ref: &'a str,
    event: &'a str,
    subject: SubjectBody<'a>,
}

/// The attributes of a subject, as an object.
struct SubjectBody<'a>(Subject<'a>);

/// The headers of an outcome, as an object.
struct OutcomeHeaders<'a>(&'a [(String, String)]);

/// A body as JSON.
pub(super) fn to_json(body: &impl Serialize) -> Bytes {
    let mut json = Vec::with_capacity(TYPICAL_BYTES);
    // Writing to memory cannot fail, and no body has keys that are not texts.
    let _ = serde_json::to_writer(&mut json, body);
    json.into()
}

impl<'a> From<&'a Check<'_>> for CheckBody<'a> {
    fn from(check: &'a Check<'_>) -> Self {
        Self {
            gate: check.gate,
            subject: SubjectBody(check.subject.reborrow()),
            cost: check.cost,
            r#ref: check.reference,
            lists: (!check.lists).then_some(false),
        }
    }
}

impl<'a> From<&'a Settle<'_>> for SettleBody<'a> {
    fn from(call: &'a Settle<'_>) -> Self {
        let outcome = OutcomeText::from(call.outcome);
        match &call.check {
            CheckRef::Ticket(ticket) => {
                Self { ticket: Some(ticket), r#ref: None, subject: None, outcome }
            }
            CheckRef::Reference(reference, subject) => {
                let subject = Some(SubjectBody(subject.reborrow()));
                Self { ticket: None, r#ref: Some(reference), subject, outcome }
            }
        }
    }
}

impl<'a> From<&'a Outcome> for OutcomeText<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        Self {
            status: outcome.status,
            body: Some(&outcome.body).filter(|body| !body.is_null()),
            body_text: outcome.body_invalid.then_some("not JSON"),
            headers: OutcomeHeaders(&outcome.headers),
            cost: outcome.cost,
        }
    }
}

impl<'a> From<&'a Credit<'_, '_>> for CreditRequestBody<'a> {
    fn from(call: &'a Credit<'_, '_>) -> Self {
        Self {
            r#ref: call.reference,
            event: call.event,
            subject: SubjectBody(call.subject.reborrow()),
        }
    }
}

impl Serialize for SubjectBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_first_of_each(self.0.pairs(), serializer)
    }
}

impl Serialize for OutcomeHeaders<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pairs = self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        serialize_first_of_each(pairs, serializer)
    }
}

impl OutcomeHeaders<'_> {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An object with the first value of each name: an engine reads that one, and the server refuses an
/// object with a repeated name.
fn serialize_first_of_each<'p, V: AsRef<str>, S: Serializer>(
    pairs: impl Iterator<Item = (&'p str, V)> + Clone,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (index, (name, value)) in pairs.clone().enumerate() {
        if pairs.clone().take(index).all(|(earlier, _)| earlier != name) {
            map.serialize_entry(name, value.as_ref())?;
        }
    }
    map.end()
}
