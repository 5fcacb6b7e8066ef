//! What calls about locks and slots take: strict, unknown fields refused.
//!
//! Must stay in this front end.

use catraca::Span;
use catraca::Time;
use catraca::core::lock::LeaseKey;
use catraca::core::lock::VersionPolicy;
use catraca::core::lock::op::{Acquire, Hold, Range, VERSION_MAX, Wanted};
use catraca::core::lock::terms::{DEFAULT_KIND, LockTerms, SLOT_KIND};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::problem::Problem;

/// Names to take, all or none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "tenant": "t1", "kind": "payment", "key": "order-7", "ttl_ms": 30_000,
    "request_id": "2f1c9a4e-6d0b-4b58-9f0e-0c3d5e7a1b22",
}))]
pub struct AcquireLock {
    /// Whose; part of the name. A key that fixes `tenant` fills it in.
    pub tenant: Option<String>,
    /// Of what kind: `appointment`, `payment`, `resource`, or any other; `default` unless given.
    pub kind: Option<String>,
    /// The name.
    pub key: Option<String>,
    /// Up to 16 names, in place of `key`.
    pub keys: Option<Vec<String>>,
    /// How long it lasts; the kind's own unless given.
    pub ttl_ms: Option<i64>,
    /// How long to wait for it; not at all unless given.
    pub wait_ms: Option<i64>,
    /// A name of yours for this request, best random: repeated with the same fields, it gives the
    /// same lease.
    pub request_id: Option<String>,
    /// A number of yours that is told back.
    #[schemars(range(min = 0, max = VERSION_MAX))]
    pub version: Option<i64>,
    /// What the version means; the kind's own unless given.
    pub version_policy: Option<Policy>,
    /// Who holds it, for people.
    pub owner_label: Option<String>,
    /// A note of yours, up to 1 KiB.
    pub meta: Option<String>,
    /// How long renewals may stretch it.
    pub max_hold_ms: Option<i64>,
}

/// What a version means.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "VersionPolicy")]
pub enum Policy {
    /// Nothing: it is told back.
    Opaque,
    /// Each grant of a name needs a higher one than the last.
    Monotonic,
}

/// A lease to renew.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "lease_id": "0123456789abcdef0123456789abcdef" }))]
pub struct RenewLock {
    /// The proof that the grant gave.
    pub lease_id: String,
    /// How long from now on; the kind's own unless given.
    pub ttl_ms: Option<i64>,
}

/// A lease to end.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "lease_id": "0123456789abcdef0123456789abcdef" }))]
pub struct EndLease {
    /// The proof that the grant gave.
    pub lease_id: String,
}

/// A range of time to hold in some calendars, all or none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "tenant": "t1", "calendar": "shop-1/ana",
    "start": "2026-01-31T12:00:00Z", "end": "2026-01-31T12:30:00Z",
}))]
pub struct HoldSlot {
    /// Whose; part of the calendar's name. A key that fixes `tenant` fills it in.
    pub tenant: Option<String>,
    /// Of what kind the lease is; `appointment` unless given.
    pub kind: Option<String>,
    /// The calendar.
    pub calendar: Option<String>,
    /// Up to 16 calendars, in place of `calendar`.
    pub calendars: Option<Vec<String>>,
    /// The first instant.
    pub start: Instant,
    /// The first instant after it.
    pub end: Instant,
    /// Kept free before it.
    #[schemars(range(min = 0, max = 86_400_000))]
    pub buffer_before_ms: Option<i64>,
    /// Kept free after it.
    #[schemars(range(min = 0, max = 86_400_000))]
    pub buffer_after_ms: Option<i64>,
    /// How long it is held; the kind's own unless given.
    pub ttl_ms: Option<i64>,
    /// A name of yours for this request, best random.
    pub request_id: Option<String>,
    /// A number of yours that is told back.
    #[schemars(range(min = 0, max = VERSION_MAX))]
    pub version: Option<i64>,
    /// Who holds it, for people.
    pub owner_label: Option<String>,
    /// A note of yours, up to 1 KiB.
    pub meta: Option<String>,
    /// How long renewals may stretch it.
    pub max_hold_ms: Option<i64>,
}

/// A hold to take for good.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "lease_id": "0123456789abcdef0123456789abcdef" }))]
pub struct ConfirmSlot {
    /// The proof that the hold gave.
    pub lease_id: String,
    /// Take it anew if the hold is over and nobody else has any of it.
    #[serde(default)]
    pub reacquire_if_free: bool,
}

/// Where to put a slot.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "lease_id": "0123456789abcdef0123456789abcdef",
    "start": "2026-01-31T14:00:00Z", "end": "2026-01-31T14:30:00Z",
}))]
pub struct MoveSlot {
    /// The proof that the hold gave.
    pub lease_id: String,
    /// Another calendar.
    pub calendar: Option<String>,
    /// Other calendars, in place of `calendar`.
    pub calendars: Option<Vec<String>>,
    /// The first instant.
    pub start: Instant,
    /// The first instant after it.
    pub end: Instant,
}

/// An instant: RFC 3339 with a zone, or milliseconds since the epoch.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Instant {
    /// RFC 3339 with a zone.
    Text(String),
    /// Milliseconds since the epoch.
    Millis(i64),
}

impl Instant {
    /// The instant, if it is one.
    pub fn time(&self, field: &str) -> Result<Time, Problem> {
        let read = match self {
            Self::Text(text) => Time::parse_rfc3339(text).ok(),
            Self::Millis(millis) if *millis >= 0 => Some(Time::from_millis(*millis)),
            Self::Millis(_) => None,
        };
        read.ok_or_else(|| {
            let detail = format!(
                "`{field}` must be an instant with a zone such as 2026-01-31T12:00:00Z, or \
                 milliseconds since 1970"
            );
            Problem::bad("bad-instant", detail)
        })
    }
}

/// One name, or several in its place.
pub fn several(
    fields: (&str, &str),
    one: Option<String>,
    many: Option<Vec<String>>,
) -> Result<Vec<Box<str>>, Problem> {
    match (one, many) {
        (Some(one), None) => Ok(vec![one.into()]),
        (None, Some(many)) => Ok(many.into_iter().map(Into::into).collect()),
        _ => {
            let detail = format!("send `{}` or `{}`, and not both", fields.0, fields.1);
            Err(Problem::bad("bad-lock", detail))
        }
    }
}

fn boxed(text: Option<String>) -> Option<Box<str>> {
    text.map(Into::into)
}

impl AcquireLock {
    /// What is to be taken, under the terms of its kind.
    pub fn read(self, terms: &LockTerms, tenant: Option<String>) -> Result<Acquire, Problem> {
        let kind: Box<str> = self.kind.unwrap_or_else(|| DEFAULT_KIND.to_owned()).into();
        let policy = match self.version_policy {
            Some(Policy::Opaque) => VersionPolicy::Opaque,
            Some(Policy::Monotonic) => VersionPolicy::Monotonic,
            None => terms.kind(&kind).version_policy,
        };
        let lease = Wanted {
            key: LeaseKey::from_bytes([0; 16]),
            request: boxed(self.request_id),
            ttl: terms.ttl(&kind, self.ttl_ms)?,
            hold_max: terms.hold(&kind, self.max_hold_ms)?,
            version: self.version,
            label: boxed(self.owner_label),
            meta: boxed(self.meta),
            grace: terms.grace(&kind),
        };
        let keys = several(("key", "keys"), self.key, self.keys)?;
        Ok(Acquire { tenant: boxed(tenant), kind, keys, lease, policy }.checked()?)
    }
}

impl HoldSlot {
    /// What is to be held, under the terms of its kind.
    pub fn read(self, terms: &LockTerms, tenant: Option<String>) -> Result<Hold, Problem> {
        let kind: Box<str> = self.kind.unwrap_or_else(|| SLOT_KIND.to_owned()).into();
        let lease = Wanted {
            key: LeaseKey::from_bytes([0; 16]),
            request: boxed(self.request_id),
            ttl: terms.ttl(&kind, self.ttl_ms)?,
            hold_max: terms.hold(&kind, self.max_hold_ms)?,
            version: self.version,
            label: boxed(self.owner_label),
            meta: boxed(self.meta),
            grace: terms.grace(&kind),
        };
        let range = Range {
            start: self.start.time("start")?,
            end: self.end.time("end")?,
            before: buffer("buffer_before_ms", self.buffer_before_ms)?,
            after: buffer("buffer_after_ms", self.buffer_after_ms)?,
        };
        let calendars = several(("calendar", "calendars"), self.calendar, self.calendars)?;
        let hold = Hold { tenant: boxed(tenant), kind, calendars, range, lease };
        Ok(hold.checked(terms.slot_max)?)
    }
}

fn buffer(field: &str, millis: Option<i64>) -> Result<Span, Problem> {
    match millis.unwrap_or(0) {
        millis @ 0.. => Ok(Span::from_millis(millis)),
        _ => Err(Problem::bad("bad-lock", format!("`{field}` is below zero: send 0 or more"))),
    }
}
