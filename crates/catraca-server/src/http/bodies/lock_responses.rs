//! JSON bodies of the responses of the lock API.
//!
//! A `lease_id` is proof of holding a lease, so only the grant contains it; the holder in a
//! conflict and the lists of operators do not.

use catraca::Time;
use catraca::core::lock::counters::AttemptCounts;
use catraca::core::lock::reply::{Conflict, Lease, LeaseState, LeaseTarget};
use catraca::locks::{LockStats, StatsRow};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::bodies::record_bodies::end_or_null;
use crate::http::bodies::schema_values;

/// A lease that was granted.
#[derive(Serialize, JsonSchema)]
pub struct GrantedLease {
    /// Always true.
    granted: bool,
    /// The proof of holding the lease, sent only here: it allows to renew and to release.
    #[schemars(example = &"0123456789abcdef0123456789abcdef")]
    lease_id: String,
    /// The fencing token: send it with every write, and let the resource refuse a lower one.
    #[schemars(example = 1_769_860_800_000_000_i64)]
    fence: i64,
    /// The version you sent, or else the fence.
    version: i64,
    /// The remaining lifetime, rounded down; count it from before you sent the request.
    ttl_ms: i64,
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    acquired_at: String,
    /// The first instant at which the lease is no longer valid.
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    expires_at: String,
    /// The instant past which it cannot be renewed.
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    renewable_until: String,
    /// Where the lease is stored: `memory` or `fsync`.
    durability: &'static str,
    #[serde(flatten)]
    target: LeaseTargetBody,
}

/// What a lease locks: names, or a slot.
#[derive(Serialize, JsonSchema)]
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
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Slot")]
pub struct SlotBody {
    calendars: Vec<String>,
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    start: String,
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    end: String,
    buffer_before_ms: i64,
    buffer_after_ms: i64,
}

/// A conflict with another holder.
#[derive(Serialize, JsonSchema)]
pub struct LockConflict {
    /// Always false.
    granted: bool,
    /// Always true.
    conflict: bool,
    /// A description for people.
    error: String,
    /// The name or calendar that is taken.
    taken: String,
    holder: Holder,
    /// Until the other lease ends; null if it is a confirmed slot.
    retry_after_ms: Option<i64>,
    /// How many requests wait for it already.
    waiters: usize,
}

/// The other holder; without its `lease_id`.
#[derive(Serialize, JsonSchema)]
pub struct Holder {
    version: i64,
    owner_label: Option<String>,
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    acquired_at: String,
    /// Null if it is a confirmed slot.
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    expires_at: Option<String>,
}

/// A lease that was renewed.
#[derive(Serialize, JsonSchema)]
pub struct RenewedLease {
    /// Always true.
    renewed: bool,
    /// The same as before.
    fence: i64,
    version: i64,
    /// The remaining lifetime, rounded down.
    ttl_ms: i64,
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    expires_at: String,
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    renewable_until: String,
}

/// The result of a release or a cancellation.
#[derive(Serialize, JsonSchema)]
pub struct EndedLease {
    /// Whether this call ended it.
    pub released: bool,
    /// `released`, `already_released`, `expired` or `not_holder`; only `released` is a change.
    #[schemars(extend("enum" = ["released", "already_released", "expired", "not_holder"]))]
    pub outcome: &'static str,
}

/// A slot that was confirmed.
#[derive(Serialize, JsonSchema)]
pub struct ConfirmedSlot {
    /// Always true.
    confirmed: bool,
    /// A new fence if the hold had ended and was reacquired.
    fence: i64,
    version: i64,
    /// Whether it is on disk.
    durable: bool,
    #[serde(flatten)]
    target: LeaseTargetBody,
}

/// A slot that was moved.
#[derive(Serialize, JsonSchema)]
pub struct MovedSlot {
    /// Always true.
    moved: bool,
    /// A new fence.
    fence: i64,
    version: i64,
    /// `held` or `confirmed`.
    state: &'static str,
    #[serde(flatten)]
    target: LeaseTargetBody,
}

/// A hold that has ended, so that it cannot be confirmed.
#[derive(Serialize, JsonSchema)]
pub struct EndedHold {
    /// Always false.
    pub confirmed: bool,
    /// A description for people.
    pub error: String,
    /// `expired`, `released` or `forced`.
    pub state: &'static str,
    /// Whether all of it is still free, so that `reacquire_if_free` would confirm it.
    pub still_free: bool,
}

/// A lease in an operator's list.
#[derive(Serialize, JsonSchema)]
pub struct ListedLease {
    /// The fence, by which an operator can end the lease.
    #[schemars(example = 1_769_860_800_000_000_i64)]
    fence: i64,
    /// `held` or `confirmed`.
    state: &'static str,
    version: i64,
    owner_label: Option<String>,
    meta: Option<String>,
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    acquired_at: String,
    /// Null if it is a confirmed slot.
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    expires_at: Option<String>,
    #[serde(flatten)]
    target: LeaseTargetBody,
}

/// Attempts by outcome: `total` is `success` plus `conflicts`, and `success` is `active` plus
/// `released`, `expired` and `forced`.
#[derive(Serialize, JsonSchema)]
pub struct LockOutcomeCounts {
    total: u64,
    success: u64,
    conflicts: u64,
    active: u64,
    released: u64,
    expired: u64,
    forced: u64,
}

/// Attempts by outcome, in all and by tenant and kind.
#[derive(Serialize, JsonSchema)]
pub struct LockCounts {
    #[serde(flatten)]
    all: LockOutcomeCounts,
    /// How many requests wait now.
    waiters: usize,
    rows: Vec<LockCountsRow>,
}

/// Attempts of one tenant and kind by outcome.
#[derive(Serialize, JsonSchema)]
pub struct LockCountsRow {
    tenant: Option<String>,
    kind: String,
    #[serde(flatten)]
    counts: LockOutcomeCounts,
}

/// Milliseconds since the epoch.
pub const fn epoch_millis(time: Time) -> i64 {
    time.micros() / 1_000
}

impl GrantedLease {
    pub fn new(lease: &Lease, lease_id: String, now: Time, durability: &'static str) -> Self {
        Self {
            granted: true,
            lease_id,
            fence: lease.fence,
            version: lease.version,
            // Rounded down: a client must never assume a longer lease than there is.
            ttl_ms: lease.expires_at.since(now).micros() / 1_000,
            acquired_at: lease.acquired_at.to_rfc3339(),
            expires_at: lease.expires_at.to_rfc3339(),
            renewable_until: lease.hold_until.to_rfc3339(),
            durability,
            target: LeaseTargetBody::new(lease),
        }
    }
}

impl LeaseTargetBody {
    fn new(lease: &Lease) -> Self {
        let (keys, slot) = match &lease.target {
            LeaseTarget::Names(names) => {
                (Some(names.iter().map(|name| name.key.to_string()).collect()), None)
            }
            LeaseTarget::Slot(names, range) => {
                let slot = SlotBody {
                    calendars: names.iter().map(|name| name.calendar.to_string()).collect(),
                    start: range.start.to_rfc3339(),
                    end: range.end.to_rfc3339(),
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
                acquired_at: holder.acquired_at.to_rfc3339(),
                expires_at: end_or_null(free_at),
            },
            // Rounded up: a retry before the end would conflict again.
            retry_after_ms: (!free_at.is_forever()).then(|| free_at.since(now).ceil_millis()),
            waiters,
        }
    }
}

impl RenewedLease {
    pub fn new(lease: &Lease, now: Time) -> Self {
        Self {
            renewed: true,
            fence: lease.fence,
            version: lease.version,
            // Rounded down: a client must never assume a longer lease than there is.
            ttl_ms: lease.expires_at.since(now).micros() / 1_000,
            expires_at: lease.expires_at.to_rfc3339(),
            renewable_until: lease.hold_until.to_rfc3339(),
        }
    }
}

impl ConfirmedSlot {
    pub fn new(lease: &Lease, durable: bool) -> Self {
        let fence = lease.fence;
        let version = lease.version;
        Self { confirmed: true, fence, version, durable, target: LeaseTargetBody::new(lease) }
    }
}

impl MovedSlot {
    pub fn new(lease: &Lease) -> Self {
        let fence = lease.fence;
        let version = lease.version;
        let state = lease.state.as_str();
        Self { moved: true, fence, version, state, target: LeaseTargetBody::new(lease) }
    }
}

impl EndedHold {
    pub fn new(state: LeaseState, still_free: bool) -> Self {
        let error = format!("the hold has ended: {}", state.as_str());
        Self { confirmed: false, error, state: state.as_str(), still_free }
    }
}

impl From<&Lease> for ListedLease {
    fn from(lease: &Lease) -> Self {
        Self {
            fence: lease.fence,
            state: lease.state.as_str(),
            version: lease.version,
            owner_label: lease.label.as_deref().map(str::to_owned),
            meta: lease.meta.as_deref().map(str::to_owned),
            acquired_at: lease.acquired_at.to_rfc3339(),
            expires_at: end_or_null(lease.expires_at),
            target: LeaseTargetBody::new(lease),
        }
    }
}

impl From<&AttemptCounts> for LockOutcomeCounts {
    fn from(counts: &AttemptCounts) -> Self {
        Self {
            total: counts.total(),
            success: counts.success,
            conflicts: counts.conflicts,
            active: counts.active,
            released: counts.released,
            expired: counts.expired,
            forced: counts.forced,
        }
    }
}

impl From<&LockStats> for LockCounts {
    fn from(stats: &LockStats) -> Self {
        let row = |row: &StatsRow| LockCountsRow {
            tenant: row.tenant.as_deref().map(str::to_owned),
            kind: row.kind.to_string(),
            counts: (&row.counts).into(),
        };
        let rows = stats.rows.iter().map(row).collect();
        Self { all: (&stats.all).into(), waiters: stats.waiters, rows }
    }
}
