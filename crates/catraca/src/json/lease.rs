//! JSON bodies of leases: a grant, a conflict, a renewal, and the end of a lease.
//!
//! A `lease_id` is proof of holding a lease, so only the grant contains it; the holder in a
//! conflict does not.

use std::borrow::Cow;

use catraca_core::lock::reply::{Conflict, Lease, LeaseState, LeaseTarget, ReleaseReply};
use catraca_core::time::Time;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::InstantText;

/// The instants of examples.
#[cfg(feature = "schema")]
const NOON: &str = "2026-01-31T12:00:00Z";
#[cfg(feature = "schema")]
const EVENING: &str = "2026-01-31T18:00:00Z";

/// A lease that was granted.
#[derive(Clone, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct GrantedLease {
    /// Always true.
    granted: bool,
    /// The proof of holding the lease, sent only here: it allows to renew and to release.
    #[cfg_attr(feature = "schema", schemars(example = &"0123456789abcdef0123456789abcdef"))]
    pub(crate) lease_id: String,
    /// The fencing token: send it with every write, and let the resource refuse a lower one.
    #[cfg_attr(feature = "schema", schemars(example = 1_769_860_800_000_000_i64))]
    pub(crate) fence: i64,
    /// The version you sent, or else the fence.
    pub(crate) version: i64,
    /// The remaining lifetime, rounded down; count it from before you sent the request.
    pub(crate) ttl_ms: i64,
    #[cfg_attr(feature = "schema", schemars(example = NOON))]
    pub(crate) acquired_at: InstantText,
    /// The first instant at which the lease is no longer valid.
    #[cfg_attr(feature = "schema", schemars(example = NOON))]
    pub(crate) expires_at: InstantText,
    /// The instant past which it cannot be renewed.
    #[cfg_attr(feature = "schema", schemars(example = EVENING))]
    pub(crate) renewable_until: InstantText,
    /// Where the lease is stored: `memory` or `fsync`.
    durability: Cow<'static, str>,
    #[serde(flatten)]
    target: LeaseTargetBody,
}

/// What a lease locks: names, or a slot.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LeaseTargetBody {
    tenant: Option<String>,
    kind: String,
    /// The locked names.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Vec<String>>,
    /// The held range of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<SlotBody>,
}

/// A range of time in some calendars.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "Slot"))]
pub struct SlotBody {
    calendars: Vec<String>,
    #[cfg_attr(feature = "schema", schemars(example = NOON))]
    start: InstantText,
    #[cfg_attr(feature = "schema", schemars(example = EVENING))]
    end: InstantText,
    buffer_before_ms: i64,
    buffer_after_ms: i64,
}

/// A conflict with another holder.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LockConflict {
    /// Always false.
    granted: bool,
    /// Always true.
    conflict: bool,
    /// A description for people.
    error: String,
    /// The name or calendar that is taken.
    pub(crate) taken: String,
    pub(crate) holder: Holder,
    /// Until the other lease ends; null if it is a confirmed slot.
    pub(crate) retry_after_ms: Option<i64>,
    /// How many requests wait for it already.
    pub(crate) waiters: usize,
}

/// The other holder; without its `lease_id`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Holder {
    pub(crate) version: i64,
    pub(crate) owner_label: Option<String>,
    #[cfg_attr(feature = "schema", schemars(example = NOON))]
    pub(crate) acquired_at: InstantText,
    /// Null if it is a confirmed slot.
    #[cfg_attr(feature = "schema", schemars(example = EVENING))]
    pub(crate) expires_at: Option<InstantText>,
}

/// A lease that was renewed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RenewedLease {
    /// Always true.
    renewed: bool,
    /// The same as before.
    pub(crate) fence: i64,
    pub(crate) version: i64,
    /// The remaining lifetime, rounded down.
    pub(crate) ttl_ms: i64,
    #[cfg_attr(feature = "schema", schemars(example = NOON))]
    pub(crate) expires_at: InstantText,
    #[cfg_attr(feature = "schema", schemars(example = EVENING))]
    pub(crate) renewable_until: InstantText,
}

/// The result of a release or a cancellation.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct EndedLease {
    /// Whether this call ended it.
    pub(crate) released: bool,
    /// `released`, `already_released`, `expired` or `not_holder`; only `released` is a change.
    #[cfg_attr(
        feature = "schema",
        schemars(extend("enum" = ["released", "already_released", "expired", "not_holder"]))
    )]
    pub(crate) outcome: Cow<'static, str>,
}

/// A slot that was confirmed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ConfirmedSlot {
    /// Always true.
    confirmed: bool,
    /// A new fence if the hold had ended and was reacquired.
    pub(crate) fence: i64,
    pub(crate) version: i64,
    /// Whether it is on disk.
    pub(crate) durable: bool,
    #[serde(flatten)]
    target: LeaseTargetBody,
}

/// A hold that has ended, so that it cannot be confirmed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct EndedHold {
    /// Always false.
    pub(crate) confirmed: bool,
    /// A description for people.
    pub(crate) error: String,
    /// `expired`, `released` or `forced`.
    pub(crate) state: Cow<'static, str>,
    /// Whether all of it is still free, so that `reacquire_if_free` would confirm it.
    pub(crate) still_free: bool,
}

impl GrantedLease {
    /// A grant with its proof, at an instant of the clock that leases expire by.
    #[doc(hidden)]
    pub fn new(lease: &Lease, lease_id: String, now: Time, durability: &'static str) -> Self {
        Self {
            granted: true,
            lease_id,
            fence: lease.fence,
            version: lease.version,
            // Rounded down: a client must never assume a longer lease than there is.
            ttl_ms: lease.expires_at.since(now).micros() / 1_000,
            acquired_at: InstantText(lease.acquired_at),
            expires_at: InstantText(lease.expires_at),
            renewable_until: InstantText(lease.hold_until),
            durability: Cow::Borrowed(durability),
            target: LeaseTargetBody::new(lease),
        }
    }
}

impl LeaseTargetBody {
    /// What this lease locks.
    pub fn new(lease: &Lease) -> Self {
        let (keys, slot) = match &lease.target {
            LeaseTarget::Names(names) => {
                (Some(names.iter().map(|name| name.key.to_string()).collect()), None)
            }
            LeaseTarget::Slot(names, range) => {
                let slot = SlotBody {
                    calendars: names.iter().map(|name| name.calendar.to_string()).collect(),
                    start: InstantText(range.start),
                    end: InstantText(range.end),
                    buffer_before_ms: range.before.ceil_millis(),
                    buffer_after_ms: range.after.ceil_millis(),
                };
                (None, Some(slot))
            }
        };
        let tenant = lease.tenant().map(str::to_owned);
        Self { tenant, kind: lease.kind.to_string(), keys, slot }
    }
}

impl LockConflict {
    /// A conflict, at an instant of the clock that leases expire by.
    #[doc(hidden)]
    pub fn new(conflict: &Conflict, waiters: usize, now: Time) -> Self {
        let holder = &conflict.holder;
        let free_at = conflict.free_at;
        Self {
            granted: false,
            conflict: true,
            error: format!("`{}` is taken by another holder", conflict.taken),
            taken: conflict.taken.to_string(),
            holder: Holder {
                version: holder.version,
                owner_label: holder.label.as_deref().map(str::to_owned),
                acquired_at: InstantText(holder.acquired_at),
                expires_at: (!free_at.is_forever()).then_some(InstantText(free_at)),
            },
            // Rounded up: a retry before the end would conflict again.
            retry_after_ms: (!free_at.is_forever()).then(|| free_at.since(now).ceil_millis()),
            waiters,
        }
    }
}

impl RenewedLease {
    /// A renewal, at an instant of the clock that leases expire by.
    #[doc(hidden)]
    pub fn new(lease: &Lease, now: Time) -> Self {
        Self {
            renewed: true,
            fence: lease.fence,
            version: lease.version,
            // Rounded down: a client must never assume a longer lease than there is.
            ttl_ms: lease.expires_at.since(now).micros() / 1_000,
            expires_at: InstantText(lease.expires_at),
            renewable_until: InstantText(lease.hold_until),
        }
    }
}

impl ConfirmedSlot {
    /// A confirmation.
    pub fn new(lease: &Lease, durable: bool) -> Self {
        let fence = lease.fence;
        let version = lease.version;
        Self { confirmed: true, fence, version, durable, target: LeaseTargetBody::new(lease) }
    }
}

impl EndedHold {
    /// The end of a hold.
    pub fn new(state: LeaseState, still_free: bool) -> Self {
        let error = format!("the hold has ended: {}", state.as_str());
        Self { confirmed: false, error, state: Cow::Borrowed(state.as_str()), still_free }
    }
}

impl From<ReleaseReply> for EndedLease {
    fn from(reply: ReleaseReply) -> Self {
        let released = reply == ReleaseReply::Released;
        Self { released, outcome: Cow::Borrowed(reply.as_str()) }
    }
}

impl EndedLease {
    /// How the lease ended; `None` if the word is not known.
    pub fn reply(&self) -> Option<ReleaseReply> {
        use ReleaseReply::{Already, Expired, NotHolder, Released};
        [Released, Already, Expired, NotHolder].into_iter().find(|it| it.as_str() == self.outcome)
    }
}
