//! What a caller asks for when it acquires names or holds a slot, before the terms of the kind are
//! applied. The same request goes to locks in this process and to a server.

use std::time::{Duration, SystemTime};

use catraca_core::lock::requests::{Acquire, Hold, LeaseRequest, TimeRange};
use catraca_core::lock::terms::{DEFAULT_KIND, SLOT_KIND};
use catraca_core::lock::{LeaseKey, LockRefusal, LockTerms, VersionPolicy};
use catraca_core::time::Span;

/// A request to acquire names, all or none.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use catraca::locks::{LocalLocks, LockRequest, LockService, LockTerms};
/// use catraca::{Locks, Secret, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = Locks::in_memory(Arc::new(SystemClock::new()), &Secret::from_bytes([7; 32]));
/// let locks = LocalLocks::new(Arc::new(locks), LockTerms::default()); // or a `Client`
/// let both = LockRequest::new("account", "ana").and("rui").ttl(Duration::from_secs(10));
/// let transfer = locks.lock(both).await?;
/// assert!(transfer.is_ok());
/// let alone = locks.lock(LockRequest::new("account", "rui")).await?;
/// assert!(alone.is_err(), "the transfer has both accounts");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockRequest {
    /// The keys.
    pub keys: Vec<Box<str>>,
    /// How a version is interpreted; `None` takes the policy of the kind.
    pub version_policy: Option<VersionPolicy>,
    /// How long to wait for names that are taken; `None` does not wait.
    pub wait: Option<Duration>,
    /// The lease.
    pub lease: LeaseOptions,
}

/// A request to hold a range of time in calendars, all or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRequest {
    /// The calendars.
    pub calendars: Vec<Box<str>>,
    /// The range of time.
    pub range: TimeRange,
    /// The lease.
    pub lease: LeaseOptions,
}

/// Options of a lease; an absent one takes the term of the kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseOptions {
    /// The tenant, if names have one.
    pub tenant: Option<Box<str>>,
    /// The kind, which chooses the terms.
    pub kind: Option<Box<str>>,
    /// The TTL, in whole milliseconds, rounded up.
    pub ttl: Option<Duration>,
    /// How long renewals may extend the lease, from its grant.
    pub max_hold: Option<Duration>,
    /// Identifies the request, so that it can be repeated.
    pub request_id: Option<Box<str>>,
    /// The version that the caller gives.
    pub version: Option<i64>,
    /// The label of the holder, for display.
    pub owner_label: Option<Box<str>>,
    /// The metadata of the caller.
    pub meta: Option<Box<str>>,
}

impl LockRequest {
    /// A request for one key of a kind, without waiting.
    pub fn new(kind: &str, key: &str) -> Self {
        let lease = LeaseOptions { kind: Some(kind.into()), ..LeaseOptions::default() };
        Self { keys: vec![key.into()], lease, ..Self::default() }
    }

    /// Adds a key: all are granted together, or none.
    #[must_use]
    pub fn and(mut self, key: &str) -> Self {
        self.keys.push(key.into());
        self
    }

    /// Asks for this TTL.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.lease.ttl = Some(ttl);
        self
    }

    /// Waits this long for names that are taken.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Shows this label to callers that find the names taken.
    #[must_use]
    pub fn owner_label(mut self, label: &str) -> Self {
        self.lease.owner_label = Some(label.into());
        self
    }

    /// The operation, with the terms of the kind. `key` is the digest of the lease id.
    pub fn into_operation(self, terms: &LockTerms, key: LeaseKey) -> Result<Acquire, LockRefusal> {
        let kind = self.lease.kind_or(DEFAULT_KIND);
        let policy = self.version_policy.unwrap_or_else(|| terms.kind(&kind).version_policy);
        let tenant = self.lease.tenant.clone();
        let lease = self.lease.into_lease(terms, &kind, key)?;
        Acquire { tenant, kind, keys: self.keys, lease, policy }.validate()
    }
}

impl SlotRequest {
    /// A request for a range of time in one calendar, without buffers.
    pub fn new(calendar: &str, start: impl Into<SystemTime>, end: impl Into<SystemTime>) -> Self {
        let range = TimeRange::of(start.into().into(), end.into().into());
        Self { calendars: vec![calendar.into()], range, lease: LeaseOptions::default() }
    }

    /// Asks for this TTL of the hold.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.lease.ttl = Some(ttl);
        self
    }

    /// The operation, with the terms of the kind. `key` is the digest of the lease id.
    pub fn into_operation(self, terms: &LockTerms, key: LeaseKey) -> Result<Hold, LockRefusal> {
        let kind = self.lease.kind_or(SLOT_KIND);
        let tenant = self.lease.tenant.clone();
        let lease = self.lease.into_lease(terms, &kind, key)?;
        let hold = Hold { tenant, kind, calendars: self.calendars, range: self.range, lease };
        hold.validate(terms.slot_max)
    }
}

impl LeaseOptions {
    fn kind_or(&self, default: &str) -> Box<str> {
        self.kind.clone().unwrap_or_else(|| default.into())
    }

    fn into_lease(
        self,
        terms: &LockTerms,
        kind: &str,
        key: LeaseKey,
    ) -> Result<LeaseRequest, LockRefusal> {
        Ok(LeaseRequest {
            key,
            request: self.request_id,
            ttl: terms.ttl(kind, self.ttl.map(whole_millis))?,
            hold_max: terms.hold(kind, self.max_hold.map(whole_millis))?,
            version: self.version,
            label: self.owner_label,
            meta: self.meta,
            grace: terms.grace(kind),
            durability: terms.durability,
        })
    }
}

/// Whole milliseconds, rounded up: a positive duration is never zero.
pub(crate) fn whole_millis(duration: Duration) -> i64 {
    let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    Span::from_micros(micros).ceil_millis()
}
