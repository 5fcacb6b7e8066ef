//! JSON bodies of the responses of the lock API that only a server has; those that clients read too
//! are in `catraca::json`.

use catraca::Time;
use catraca::core::lock::counters::AttemptCounts;
use catraca::core::lock::reply::Lease;
use catraca::json::LeaseTargetBody;
use catraca::locks::{LockStats, StatsRow};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::bodies::record_bodies::end_or_null;
use crate::http::bodies::schema_values;

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

/// A lease in an operator's list.
#[derive(Serialize, JsonSchema)]
pub struct ListedLease {
    #[schemars(example = &"default")]
    namespace: String,
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

/// Attempts by outcome, in all and by namespace, tenant and kind.
#[derive(Serialize, JsonSchema)]
pub struct LockCounts {
    #[serde(flatten)]
    all: LockOutcomeCounts,
    /// How many requests wait now.
    waiters: usize,
    rows: Vec<LockCountsRow>,
}

/// Attempts of one namespace, tenant and kind by outcome.
#[derive(Serialize, JsonSchema)]
pub struct LockCountsRow {
    #[schemars(example = &"default")]
    namespace: String,
    tenant: Option<String>,
    kind: String,
    #[serde(flatten)]
    counts: LockOutcomeCounts,
}

/// Milliseconds since the epoch.
pub const fn epoch_millis(time: Time) -> i64 {
    time.micros() / 1_000
}

impl MovedSlot {
    pub fn new(lease: &Lease) -> Self {
        let fence = lease.fence;
        let version = lease.version;
        let state = lease.state.as_str();
        Self { moved: true, fence, version, state, target: LeaseTargetBody::new(lease) }
    }
}

impl ListedLease {
    pub fn new(namespace: &str, lease: &Lease) -> Self {
        Self {
            namespace: namespace.to_owned(),
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

impl LockCounts {
    /// The sum of the statistics of several namespaces.
    pub fn new(namespaces: &[(String, LockStats)]) -> Self {
        let row = |namespace: &str, row: &StatsRow| LockCountsRow {
            namespace: namespace.to_owned(),
            tenant: row.tenant.as_deref().map(str::to_owned),
            kind: row.kind.to_string(),
            counts: (&row.counts).into(),
        };
        let mut all = AttemptCounts::default();
        let mut waiters = 0;
        let mut rows = Vec::new();
        for (namespace, stats) in namespaces {
            all = all.plus(&stats.all);
            waiters += stats.waiters;
            rows.extend(stats.rows.iter().map(|counts| row(namespace, counts)));
        }
        Self { all: (&all).into(), waiters, rows }
    }
}
