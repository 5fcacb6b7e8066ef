//! JSON bodies of the requests of the lock API, and their conversion to lock operations.
//!
//! Unknown fields are refused.

use std::time::Duration;

use catraca::Span;
use catraca::Time;
use catraca::core::lock::LeaseKey;
use catraca::core::lock::VersionPolicy;
use catraca::core::lock::requests::{Acquire, Hold, TimeRange, VERSION_MAX};
use catraca::core::lock::terms::LockTerms;
use catraca::locks::{LeaseOptions, LockRequest, SlotRequest};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::bodies::problem::Problem;

/// Names to lock, all or none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "tenant": "t1", "kind": "payment", "key": "order-7", "ttl_ms": 30_000,
    "request_id": "2f1c9a4e-6d0b-4b58-9f0e-0c3d5e7a1b22",
}))]
pub struct AcquireLock {
    /// The tenant, which is part of the name; an API key that fixes `tenant` sets it.
    pub tenant: Option<String>,
    /// The kind: `appointment`, `payment`, `resource`, or any other. Default: `default`.
    pub kind: Option<String>,
    /// The name.
    pub key: Option<String>,
    /// Up to 16 names, in place of `key`.
    pub keys: Option<Vec<String>>,
    /// The lifetime of the lease. Default: that of its kind.
    pub ttl_ms: Option<i64>,
    /// How long to wait if a name is taken. Default: 0.
    pub wait_ms: Option<i64>,
    /// An id of this request, best a random one: a repeated request with the same id and fields
    /// returns the same lease.
    pub request_id: Option<String>,
    /// A number of your own, returned with the lease.
    #[schemars(range(min = 0, max = VERSION_MAX))]
    pub version: Option<i64>,
    /// How `version` is checked. Default: as configured for its kind.
    pub version_policy: Option<VersionPolicyBody>,
    /// The holder's name, shown to other clients and operators.
    pub owner_label: Option<String>,
    /// A note, up to 1 KiB.
    pub meta: Option<String>,
    /// The longest time that renewals can extend the lease to, from its grant.
    pub max_hold_ms: Option<i64>,
}

/// How a version is checked.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "VersionPolicy")]
pub enum VersionPolicyBody {
    /// Not at all: it is only returned.
    Opaque,
    /// Each grant of a name needs a higher version than the one before.
    Monotonic,
}

/// A lease to renew.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "lease_id": "0123456789abcdef0123456789abcdef" }))]
pub struct RenewLock {
    /// The `lease_id` of the grant.
    pub lease_id: String,
    /// The lifetime from now on. Default: that of its kind.
    pub ttl_ms: Option<i64>,
}

/// A lease to end.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "lease_id": "0123456789abcdef0123456789abcdef" }))]
pub struct EndLease {
    /// The `lease_id` of the grant.
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
    /// The tenant, which is part of the calendar's name; an API key that fixes `tenant` sets it.
    pub tenant: Option<String>,
    /// The kind of the lease. Default: `appointment`.
    pub kind: Option<String>,
    /// The calendar.
    pub calendar: Option<String>,
    /// Up to 16 calendars, in place of `calendar`.
    pub calendars: Option<Vec<String>>,
    /// The first instant of the slot.
    pub start: InstantBody,
    /// The first instant after the slot.
    pub end: InstantBody,
    /// How long to keep free before the slot.
    #[schemars(range(min = 0, max = 86_400_000))]
    pub buffer_before_ms: Option<i64>,
    /// How long to keep free after the slot.
    #[schemars(range(min = 0, max = 86_400_000))]
    pub buffer_after_ms: Option<i64>,
    /// How long it is held. Default: the lifetime of its kind.
    pub ttl_ms: Option<i64>,
    /// An id of this request, best a random one.
    pub request_id: Option<String>,
    /// A number of your own, returned with the lease.
    #[schemars(range(min = 0, max = VERSION_MAX))]
    pub version: Option<i64>,
    /// The holder's name, shown to other clients and operators.
    pub owner_label: Option<String>,
    /// A note, up to 1 KiB.
    pub meta: Option<String>,
    /// The longest time that renewals can extend the lease to, from its grant.
    pub max_hold_ms: Option<i64>,
}

/// A hold to confirm.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "lease_id": "0123456789abcdef0123456789abcdef" }))]
pub struct ConfirmSlot {
    /// The `lease_id` of the hold.
    pub lease_id: String,
    /// Reacquire the slot if the hold has ended and all of it is still free. Default: false.
    #[serde(default)]
    pub reacquire_if_free: bool,
}

/// A slot to move, and its new range.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "lease_id": "0123456789abcdef0123456789abcdef",
    "start": "2026-01-31T14:00:00Z", "end": "2026-01-31T14:30:00Z",
}))]
pub struct MoveSlot {
    /// The `lease_id` of the hold.
    pub lease_id: String,
    /// Another calendar.
    pub calendar: Option<String>,
    /// Other calendars, in place of `calendar`.
    pub calendars: Option<Vec<String>>,
    /// The first instant of the slot.
    pub start: InstantBody,
    /// The first instant after the slot.
    pub end: InstantBody,
}

/// An instant: RFC 3339 with a zone, or milliseconds since the epoch.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected RFC 3339 with a zone, or milliseconds since 1970")]
#[schemars(rename = "Instant")]
pub enum InstantBody {
    /// RFC 3339 with a zone.
    Text(String),
    /// Milliseconds since the epoch.
    Millis(i64),
}

impl InstantBody {
    /// Parses the instant; `field` is its name in the error.
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

/// The names of a body that has either one name or a list of names.
pub fn one_or_several(
    one_field: &str,
    many_field: &str,
    one: Option<String>,
    many: Option<Vec<String>>,
) -> Result<Vec<Box<str>>, Problem> {
    match (one, many) {
        (Some(one), None) => Ok(vec![one.into()]),
        (None, Some(many)) => Ok(many.into_iter().map(Into::into).collect()),
        _ => {
            let detail = format!("send either `{one_field}` or `{many_field}`");
            Err(Problem::bad("bad-lock", detail))
        }
    }
}

fn into_boxed(text: Option<String>) -> Option<Box<str>> {
    text.map(Into::into)
}

impl AcquireLock {
    /// The operation, with defaults and limits of its kind. The handler sets its key, which
    /// depends on the namespace.
    pub fn into_operation(
        self,
        terms: &LockTerms,
        tenant: Option<String>,
    ) -> Result<Acquire, Problem> {
        let request = LockRequest {
            keys: one_or_several("key", "keys", self.key, self.keys)?,
            version_policy: self.version_policy.map(VersionPolicy::from),
            wait: duration("wait_ms", self.wait_ms)?,
            lease: LeaseOptions {
                tenant: into_boxed(tenant),
                kind: into_boxed(self.kind),
                ttl: duration("ttl_ms", self.ttl_ms)?,
                max_hold: duration("max_hold_ms", self.max_hold_ms)?,
                request_id: into_boxed(self.request_id),
                version: self.version,
                owner_label: into_boxed(self.owner_label),
                meta: into_boxed(self.meta),
            },
        };
        Ok(request.into_operation(terms, LeaseKey::from_bytes([0; 16]))?)
    }
}

impl HoldSlot {
    /// The operation, with defaults and limits of its kind. The handler sets its key, which
    /// depends on the namespace.
    pub fn into_operation(
        self,
        terms: &LockTerms,
        tenant: Option<String>,
    ) -> Result<Hold, Problem> {
        let request = SlotRequest {
            calendars: one_or_several("calendar", "calendars", self.calendar, self.calendars)?,
            range: TimeRange {
                start: self.start.time("start")?,
                end: self.end.time("end")?,
                before: buffer("buffer_before_ms", self.buffer_before_ms)?,
                after: buffer("buffer_after_ms", self.buffer_after_ms)?,
            },
            lease: LeaseOptions {
                tenant: into_boxed(tenant),
                kind: into_boxed(self.kind),
                ttl: duration("ttl_ms", self.ttl_ms)?,
                max_hold: duration("max_hold_ms", self.max_hold_ms)?,
                request_id: into_boxed(self.request_id),
                version: self.version,
                owner_label: into_boxed(self.owner_label),
                meta: into_boxed(self.meta),
            },
        };
        Ok(request.into_operation(terms, LeaseKey::from_bytes([0; 16]))?)
    }
}

impl From<VersionPolicyBody> for VersionPolicy {
    fn from(body: VersionPolicyBody) -> Self {
        match body {
            VersionPolicyBody::Opaque => Self::Opaque,
            VersionPolicyBody::Monotonic => Self::Monotonic,
        }
    }
}

/// A duration of a body. The terms of the kind have its other bounds.
pub fn duration(field: &str, millis: Option<i64>) -> Result<Option<Duration>, Problem> {
    let Some(millis) = millis else { return Ok(None) };
    match u64::try_from(millis) {
        Ok(millis) => Ok(Some(Duration::from_millis(millis))),
        Err(_) => Err(Problem::bad("bad-lock", format!("`{field}` is negative: send 1 or more"))),
    }
}

fn buffer(field: &str, millis: Option<i64>) -> Result<Span, Problem> {
    match millis.unwrap_or(0) {
        millis @ 0.. => Ok(Span::from_millis(millis)),
        _ => Err(Problem::bad("bad-lock", format!("`{field}` is negative: send 0 or more"))),
    }
}
