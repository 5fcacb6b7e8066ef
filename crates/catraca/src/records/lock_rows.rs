//! Locks in the records: database rows of leases, versions and fences, and the lock journal.

use catraca_core::lock::persistence::{PersistedFence, PersistedLease, PersistedVersion};
use catraca_core::lock::reply::LeaseState;
use catraca_core::lock::requests::TimeRange;
use catraca_core::lock::{LeaseKey, LockName};
use catraca_core::time::{Span, Time};

#[cfg(feature = "locks")]
use super::Records;

/// What the records hold of a namespace's locks.
#[derive(Clone, Debug)]
pub enum RecordedLock {
    /// The fencing tokens and lease times that may have been granted.
    Fence(String, PersistedFence),
    /// A lease.
    Lease(String, Box<PersistedLease>),
    /// The highest version of a name.
    Version(String, Box<PersistedVersion>),
}

#[cfg(feature = "locks")]
impl crate::locks::Journal for Records {
    fn write(
        &self,
        writes: Vec<catraca_core::lock::persistence::LockWrite>,
    ) -> crate::locks::JournalFuture {
        let records = writes.into_iter().map(|write| {
            super::Record::automatic(Time::ZERO, super::RecordKind::Lock(Box::new(write)))
        });
        let receipt = self.record(records.collect());
        Box::pin(async move {
            match receipt.await {
                super::Ack::Durable => Ok(()),
                super::Ack::NotYet(why) => Err(why.to_string()),
            }
        })
    }
}

/// The columns of a lease that need a conversion.
pub(super) struct RecordedLeaseColumns {
    pub names: String,
    pub range: [Option<i64>; 4],
    pub request: Option<Vec<u8>>,
}

impl RecordedLeaseColumns {
    pub(super) fn of(lease: &PersistedLease) -> Self {
        let range = match &lease.range {
            Some(range) => [
                Some(range.start.micros()),
                Some(range.end.micros()),
                Some(range.before.micros()),
                Some(range.after.micros()),
            ],
            None => [None; 4],
        };
        let request = lease.request.map(|(name, digest)| [name, digest].concat());
        let names: Vec<&str> = lease.names.iter().map(|name| &**name).collect();
        Self { names: serde_json::json!(names).to_string(), range, request }
    }
}

/// A row of `leases`: the key, texts, the range, numbers, the request.
pub(super) struct RecordedLeaseRow {
    pub namespace: String,
    pub lease: Vec<u8>,
    pub texts: [Option<String>; 6],
    pub range: [Option<i64>; 4],
    pub numbers: [i64; 6],
    pub request: Option<Vec<u8>>,
}

impl RecordedLeaseRow {
    /// The lease of the row, or nothing if a column is invalid.
    pub(super) fn lease(self) -> Option<RecordedLock> {
        let [tenant, kind, names, label, meta, state] = self.texts;
        let [fence, version, acquired, expires, hold_until, ttl] = self.numbers;
        let names: Vec<String> = serde_json::from_str(&names?).ok()?;
        let range = match self.range {
            [Some(start), Some(end), Some(before), Some(after)] => Some(TimeRange {
                start: Time::from_micros(start),
                end: Time::from_micros(end),
                before: Span::from_micros(before),
                after: Span::from_micros(after),
            }),
            _ => None,
        };
        let state = match state?.as_str() {
            "held" => LeaseState::Held,
            "confirmed" => LeaseState::Confirmed,
            _ => return None,
        };
        let request = match self.request {
            Some(bytes) => {
                let (name, digest) = bytes.split_at_checked(16)?;
                Some((name.try_into().ok()?, digest.try_into().ok()?))
            }
            None => None,
        };
        let stored = PersistedLease {
            key: LeaseKey::from_bytes(self.lease.try_into().ok()?),
            tenant: tenant.map(Into::into),
            kind: kind?.into(),
            names: names.into_iter().map(Into::into).collect(),
            range,
            fence,
            version,
            label: label.map(Into::into),
            meta: meta.map(Into::into),
            acquired_at: Time::from_micros(acquired),
            expires_at: Time::from_micros(expires),
            hold_until: Time::from_micros(hold_until),
            ttl: Span::from_micros(ttl),
            state,
            request,
        };
        Some(RecordedLock::Lease(self.namespace, Box::new(stored)))
    }
}

/// A name as one text, unique among names.
pub(super) fn name_text(name: &LockName) -> String {
    serde_json::json!([name.tenant.as_deref(), &*name.kind, &*name.key]).to_string()
}

/// The version in a row of `versions`, or nothing if the name is invalid.
pub(super) fn version_record(
    namespace: String,
    name: &str,
    version: i64,
    until: i64,
) -> Option<RecordedLock> {
    let (tenant, kind, key): (Option<String>, String, String) = serde_json::from_str(name).ok()?;
    let name = LockName { tenant: tenant.map(Into::into), kind: kind.into(), key: key.into() };
    let stored = PersistedVersion { name, version, until: Time::from_micros(until) };
    Some(RecordedLock::Version(namespace, Box::new(stored)))
}

/// The fence in a row of `fences`.
pub(super) fn fence_record(
    namespace: String,
    ceiling: i64,
    longest: i64,
    left: Option<i64>,
) -> RecordedLock {
    let longest = Span::from_micros(longest);
    let left = left.map(Span::from_micros);
    RecordedLock::Fence(namespace, PersistedFence { ceiling, longest, left })
}
