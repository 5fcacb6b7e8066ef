//! Locks in the records: what a lease looks like as a row, and the journal of the locks.
//!
//! Must not know any database.

use catraca_core::lock::kept::{KeptFence, KeptLease, KeptVersion};
use catraca_core::lock::op::Range;
use catraca_core::lock::reply::State;
use catraca_core::lock::{LeaseKey, LockName};
use catraca_core::time::{Span, Time};

use super::Records;
use super::error::RecordsError;

/// What was kept of a namespace's locks.
#[derive(Clone, Debug)]
pub enum KeptLock {
    /// What it may have given out.
    Fence(String, KeptFence),
    /// A lease.
    Lease(String, Box<KeptLease>),
    /// The highest version of a name.
    Version(String, Box<KeptVersion>),
}

impl Records {
    /// Calls `visit` with everything that is kept of locks and slots.
    pub fn locks(&self, mut visit: impl FnMut(KeptLock)) -> Result<(), RecordsError> {
        self.reads.locks(&mut visit)
    }
}

#[cfg(feature = "locks")]
impl crate::locks::Journal for Records {
    fn write(&self, deeds: Vec<catraca_core::lock::kept::LockDeed>) -> crate::locks::Written {
        let records = deeds
            .into_iter()
            .map(|deed| super::Record::automatic(Time::ZERO, super::Deed::Lock(Box::new(deed))));
        let receipt = self.record(records.collect());
        Box::pin(async move {
            match receipt.await {
                super::Ack::Durable => Ok(()),
                super::Ack::NotYet(why) => Err(why.to_string()),
            }
        })
    }
}

/// The columns of a lease that are not taken as they are.
pub(super) struct Columns {
    pub names: String,
    pub range: [Option<i64>; 4],
    pub request: Option<Vec<u8>>,
}

impl Columns {
    pub(super) fn of(lease: &KeptLease) -> Self {
        let range = match &lease.range {
            Some(range) => [
                Some(range.start.micros()),
                Some(range.end.micros()),
                Some(range.before.micros()),
                Some(range.after.micros()),
            ],
            None => [None; 4],
        };
        let request = lease.request.map(|(name, print)| [name, print].concat());
        let names: Vec<&str> = lease.names.iter().map(|name| &**name).collect();
        Self { names: serde_json::json!(names).to_string(), range, request }
    }
}

/// A row as it is read, in the order of its columns.
pub(super) struct Row {
    pub namespace: String,
    pub lease: Vec<u8>,
    pub texts: [Option<String>; 6],
    pub range: [Option<i64>; 4],
    pub numbers: [i64; 6],
    pub request: Option<Vec<u8>>,
}

/// The columns in the order of [`Row`]: the key, texts, the range, numbers, the request.
pub(super) const COLUMNS: &str = "namespace, lease, tenant, kind, names, label, meta, state, \
    starts, ends, before, after, fence, version, acquired, expires, hold_until, ttl, request";

impl Row {
    /// The lease of the row; nothing if it makes no sense.
    pub(super) fn lease(self) -> Option<KeptLock> {
        let [tenant, kind, names, label, meta, state] = self.texts;
        let [fence, version, acquired, expires, hold_until, ttl] = self.numbers;
        let names: Vec<String> = serde_json::from_str(&names?).ok()?;
        let range = match self.range {
            [Some(start), Some(end), Some(before), Some(after)] => Some(Range {
                start: Time::from_micros(start),
                end: Time::from_micros(end),
                before: Span::from_micros(before),
                after: Span::from_micros(after),
            }),
            _ => None,
        };
        let state = match state?.as_str() {
            "held" => State::Held,
            "confirmed" => State::Confirmed,
            _ => return None,
        };
        let request = match self.request {
            Some(bytes) => {
                let (name, print) = bytes.split_at_checked(16)?;
                Some((name.try_into().ok()?, print.try_into().ok()?))
            }
            None => None,
        };
        let kept = KeptLease {
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
        Some(KeptLock::Lease(self.namespace, Box::new(kept)))
    }
}

/// A name as one text that no other name has.
pub(super) fn name_text(name: &LockName) -> String {
    serde_json::json!([name.tenant.as_deref(), &*name.kind, &*name.key]).to_string()
}

/// What a row of `versions` says; nothing if it makes no sense.
pub(super) fn version(
    namespace: String,
    name: &str,
    (version, until): (i64, i64),
) -> Option<KeptLock> {
    let (tenant, kind, key): (Option<String>, String, String) = serde_json::from_str(name).ok()?;
    let name = LockName { tenant: tenant.map(Into::into), kind: kind.into(), key: key.into() };
    let kept = KeptVersion { name, version, until: Time::from_micros(until) };
    Some(KeptLock::Version(namespace, Box::new(kept)))
}

/// What a row of `fences` says.
pub(super) fn fence(
    namespace: String,
    (ceiling, longest): (i64, i64),
    left: Option<i64>,
) -> KeptLock {
    let (longest, left) = (Span::from_micros(longest), left.map(Span::from_micros));
    KeptLock::Fence(namespace, KeptFence { ceiling, longest, left })
}
