//! What calls about locks and slots answer. No proof but the caller's own is ever in it.
//!
//! Must stay in this front end.

use catraca::Time;
use catraca::core::lock::reply::{Conflict, State, View, What};
use catraca::core::lock::tally::Counts;
use catraca::locks::{LockStats, StatsRow};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::words;

/// A lease that is yours.
#[derive(Serialize, JsonSchema)]
pub struct Granted {
    /// Always true.
    granted: bool,
    /// The proof of holding it, told here and never again: whoever has it can renew and release.
    #[schemars(example = &"0123456789abcdef0123456789abcdef")]
    lease_id: String,
    /// Send it with every write, and let the resource refuse a lower one.
    #[schemars(example = 1_769_860_800_000_000_i64)]
    fence: i64,
    /// Your own number, or the fence.
    version: i64,
    /// From now on, rounded down; count it from before you asked.
    ttl_ms: i64,
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    acquired_at: String,
    /// The first instant at which it is over.
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    expires_at: String,
    /// The instant past which it cannot be renewed.
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    renewable_until: String,
    /// Where it is kept: `memory` or `fsync`.
    durability: &'static str,
    #[serde(flatten)]
    about: About,
}

/// What a lease is about.
#[derive(Serialize, JsonSchema)]
pub struct About {
    tenant: Option<String>,
    kind: String,
    /// The names, for a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Vec<String>>,
    /// The range of time, for a slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<Slot>,
}

/// A range of time in some calendars.
#[derive(Serialize, JsonSchema)]
pub struct Slot {
    calendars: Vec<String>,
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    start: String,
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    end: String,
    buffer_before_ms: i64,
    buffer_after_ms: i64,
}

/// Somebody else has it.
#[derive(Serialize, JsonSchema)]
pub struct Taken {
    /// Always false.
    granted: bool,
    /// Always true.
    conflict: bool,
    /// What happened, for people.
    error: String,
    /// The name or calendar that is taken.
    taken: String,
    holder: Holder,
    /// When it may be free; null if it is confirmed.
    retry_after_ms: Option<i64>,
    /// How many wait for it already.
    waiters: usize,
}

/// Who has it, without anything that would let you end it.
#[derive(Serialize, JsonSchema)]
pub struct Holder {
    version: i64,
    owner_label: Option<String>,
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    acquired_at: String,
    /// Null once it is confirmed.
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    expires_at: Option<String>,
}

/// A lease that lasts longer now.
#[derive(Serialize, JsonSchema)]
pub struct Extended {
    /// Always true.
    renewed: bool,
    /// The same as before.
    fence: i64,
    version: i64,
    /// From now on, rounded down.
    ttl_ms: i64,
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    expires_at: String,
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    renewable_until: String,
}

/// What became of a lease that was given back.
#[derive(Serialize, JsonSchema)]
pub struct EndedLease {
    /// Whether this call ended it.
    pub released: bool,
    /// `released`, `already_released`, `expired` or `not_holder`; only the first changes anything.
    #[schemars(extend("enum" = ["released", "already_released", "expired", "not_holder"]))]
    pub outcome: &'static str,
}

/// A slot that is taken for good.
#[derive(Serialize, JsonSchema)]
pub struct ConfirmedSlot {
    /// Always true.
    confirmed: bool,
    /// A new number if it was taken anew.
    fence: i64,
    version: i64,
    /// Whether it is on disk.
    durable: bool,
    #[serde(flatten)]
    about: About,
}

/// A slot that is somewhere else now.
#[derive(Serialize, JsonSchema)]
pub struct MovedSlot {
    /// Always true.
    moved: bool,
    /// A new number.
    fence: i64,
    version: i64,
    /// `held` or `confirmed`.
    state: &'static str,
    #[serde(flatten)]
    about: About,
}

/// A hold that is over.
#[derive(Serialize, JsonSchema)]
pub struct HoldOver {
    /// Always false.
    pub confirmed: bool,
    /// What happened, for people.
    pub error: String,
    /// `expired`, `released` or `forced`.
    pub state: &'static str,
    /// Whether nobody else has any of it yet: `reacquire_if_free` would take it.
    pub still_free: bool,
}

/// A lease as operators see it.
#[derive(Serialize, JsonSchema)]
pub struct Listed {
    /// Its number, by which it can be ended.
    #[schemars(example = 1_769_860_800_000_000_i64)]
    fence: i64,
    /// `held` or `confirmed`.
    state: &'static str,
    version: i64,
    owner_label: Option<String>,
    meta: Option<String>,
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    acquired_at: String,
    /// Null once it is confirmed.
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    expires_at: Option<String>,
    #[serde(flatten)]
    about: About,
}

/// What became of all attempts: `total` is `success` and `conflicts`; `success` is `active`,
/// `released`, `expired` and `forced`.
#[derive(Serialize, JsonSchema)]
pub struct Counted {
    total: u64,
    success: u64,
    conflicts: u64,
    active: u64,
    released: u64,
    expired: u64,
    forced: u64,
}

/// The same for all, and by tenant and kind.
#[derive(Serialize, JsonSchema)]
pub struct LockCounts {
    #[serde(flatten)]
    all: Counted,
    /// How many wait right now.
    waiters: usize,
    rows: Vec<CountedRow>,
}

/// The same of one tenant and kind.
#[derive(Serialize, JsonSchema)]
pub struct CountedRow {
    tenant: Option<String>,
    kind: String,
    #[serde(flatten)]
    counts: Counted,
}

/// Milliseconds since the epoch.
pub const fn millis(time: Time) -> i64 {
    time.micros() / 1_000
}

fn end(time: Time) -> Option<String> {
    (!time.is_forever()).then(|| time.to_rfc3339())
}

impl Granted {
    pub fn new(view: &View, lease_id: String, now: Time, durability: &'static str) -> Self {
        Self {
            granted: true,
            lease_id,
            fence: view.fence,
            version: view.version,
            ttl_ms: view.expires_at.since(now).micros() / 1_000,
            acquired_at: view.acquired_at.to_rfc3339(),
            expires_at: view.expires_at.to_rfc3339(),
            renewable_until: view.hold_until.to_rfc3339(),
            durability,
            about: About::new(view),
        }
    }
}

impl About {
    fn new(view: &View) -> Self {
        let (keys, slot) = match &view.what {
            What::Names(names) => {
                (Some(names.iter().map(|name| name.key.to_string()).collect()), None)
            }
            What::Slot(names, range) => {
                let slot = Slot {
                    calendars: names.iter().map(|name| name.calendar.to_string()).collect(),
                    start: range.start.to_rfc3339(),
                    end: range.end.to_rfc3339(),
                    buffer_before_ms: range.before.ceil_millis(),
                    buffer_after_ms: range.after.ceil_millis(),
                };
                (None, Some(slot))
            }
        };
        let (tenant, kind) = (view.tenant().map(str::to_owned), view.kind.to_string());
        Self { tenant, kind, keys, slot }
    }
}

impl Taken {
    pub fn new(conflict: &Conflict, waiters: usize, now: Time) -> Self {
        let (holder, free) = (&conflict.holder, conflict.free_at);
        Self {
            granted: false,
            conflict: true,
            error: format!("`{}` is taken by somebody else", conflict.taken),
            taken: conflict.taken.to_string(),
            holder: Holder {
                version: holder.version,
                owner_label: holder.label.as_deref().map(str::to_owned),
                acquired_at: holder.acquired_at.to_rfc3339(),
                expires_at: end(free),
            },
            retry_after_ms: (!free.is_forever()).then(|| free.since(now).ceil_millis()),
            waiters,
        }
    }
}

impl Extended {
    pub fn new(view: &View, now: Time) -> Self {
        Self {
            renewed: true,
            fence: view.fence,
            version: view.version,
            ttl_ms: view.expires_at.since(now).micros() / 1_000,
            expires_at: view.expires_at.to_rfc3339(),
            renewable_until: view.hold_until.to_rfc3339(),
        }
    }
}

impl ConfirmedSlot {
    pub fn new(view: &View, durable: bool) -> Self {
        let (fence, version) = (view.fence, view.version);
        Self { confirmed: true, fence, version, durable, about: About::new(view) }
    }
}

impl MovedSlot {
    pub fn new(view: &View) -> Self {
        let (fence, version, state) = (view.fence, view.version, view.state.as_str());
        Self { moved: true, fence, version, state, about: About::new(view) }
    }
}

impl HoldOver {
    pub fn new(state: State, still_free: bool) -> Self {
        let error = format!("the hold is over: {}", state.as_str());
        Self { confirmed: false, error, state: state.as_str(), still_free }
    }
}

impl From<&View> for Listed {
    fn from(view: &View) -> Self {
        Self {
            fence: view.fence,
            state: view.state.as_str(),
            version: view.version,
            owner_label: view.label.as_deref().map(str::to_owned),
            meta: view.meta.as_deref().map(str::to_owned),
            acquired_at: view.acquired_at.to_rfc3339(),
            expires_at: end(view.expires_at),
            about: About::new(view),
        }
    }
}

impl From<&Counts> for Counted {
    fn from(counts: &Counts) -> Self {
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
        let row = |row: &StatsRow| CountedRow {
            tenant: row.tenant.as_deref().map(str::to_owned),
            kind: row.kind.to_string(),
            counts: (&row.counts).into(),
        };
        let rows = stats.rows.iter().map(row).collect();
        Self { all: (&stats.all).into(), waiters: stats.waiters, rows }
    }
}
