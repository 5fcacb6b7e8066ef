//! Converts leases to table rows and back. A row that cannot be decoded fails the operation.

use std::sync::Arc;

use catraca_core::lock::reply::{Lease, LeaseState, LeaseTarget};
use catraca_core::lock::requests::TimeRange;
use catraca_core::lock::table::StoredLease;
use catraca_core::lock::{CalendarName, LeaseKey, LockName, NameDigest};
use catraca_core::time::{Span, Time};
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

use super::{LockStatement, bind};
use crate::store::StoreError;

const UPSERT: &str = "INSERT INTO catraca_store.leases (namespace, lease, fence, tenant, kind, \
    names, starts, ends, before, after, version, label, meta, acquired, expires, hold_until, ttl, \
    state, request, asked, due, cool_until) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, \
    $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22) \
    ON CONFLICT (namespace, lease) DO UPDATE SET fence = excluded.fence, \
    tenant = excluded.tenant, kind = excluded.kind, names = excluded.names, \
    starts = excluded.starts, ends = excluded.ends, before = excluded.before, \
    after = excluded.after, version = excluded.version, label = excluded.label, \
    meta = excluded.meta, acquired = excluded.acquired, expires = excluded.expires, \
    hold_until = excluded.hold_until, ttl = excluded.ttl, state = excluded.state, \
    request = excluded.request, asked = excluded.asked, due = excluded.due, \
    cool_until = excluded.cool_until";

const STATES: [LeaseState; 5] = [
    LeaseState::Held,
    LeaseState::Confirmed,
    LeaseState::Released,
    LeaseState::Expired,
    LeaseState::Forced,
];

/// The statement that writes a lease. Instants and spans are in microseconds.
pub(super) fn upsert(namespace: NameDigest, stored: &StoredLease) -> LockStatement {
    let lease = &stored.lease;
    let (names, range) = names_and_range(lease);
    let text = |text: Option<&str>| text.map(str::to_owned);
    let values = vec![
        bind(namespace.0.to_vec(), Type::BYTEA),
        bind(lease.key.to_bytes().to_vec(), Type::BYTEA),
        bind(lease.fence, Type::INT8),
        bind(text(lease.tenant()), Type::TEXT),
        bind(lease.kind.to_string(), Type::TEXT),
        bind(names, Type::TEXT_ARRAY),
        bind(range.map(|range| range.start.micros()), Type::INT8),
        bind(range.map(|range| range.end.micros()), Type::INT8),
        bind(range.map(|range| range.before.micros()), Type::INT8),
        bind(range.map(|range| range.after.micros()), Type::INT8),
        bind(lease.version, Type::INT8),
        bind(text(lease.label.as_deref()), Type::TEXT),
        bind(text(lease.meta.as_deref()), Type::TEXT),
        bind(lease.acquired_at.micros(), Type::INT8),
        bind(lease.expires_at.micros(), Type::INT8),
        bind(lease.hold_until.micros(), Type::INT8),
        bind(lease.ttl.micros(), Type::INT8),
        bind(lease.state.as_str(), Type::TEXT),
        bind(stored.request.map(|(id_digest, _)| id_digest.to_vec()), Type::BYTEA),
        bind(stored.request.map(|(_, content_digest)| content_digest.to_vec()), Type::BYTEA),
        bind(stored.due.micros(), Type::INT8),
        bind(stored.cool_until.micros(), Type::INT8),
    ];
    LockStatement { sql: UPSERT, values }
}

/// The names or calendars of a lease, and the range of a slot.
fn names_and_range(lease: &Lease) -> (Vec<String>, Option<TimeRange>) {
    match &lease.target {
        LeaseTarget::Names(names) => {
            (names.iter().map(|name| name.key.to_string()).collect(), None)
        }
        LeaseTarget::Slot(names, range) => {
            (names.iter().map(|name| name.calendar.to_string()).collect(), Some(*range))
        }
    }
}

/// The digests of the names or calendars of a lease.
pub(super) fn name_digests(namespace: &str, lease: &Lease) -> Vec<NameDigest> {
    match &lease.target {
        LeaseTarget::Names(names) => names.iter().map(|name| name.digest(namespace)).collect(),
        LeaseTarget::Slot(names, _) => names.iter().map(|name| name.digest(namespace)).collect(),
    }
}

/// Reads a lease; the columns are those of the queries in `load_plan`.
pub(super) fn read(row: &Row) -> Result<StoredLease, StoreError> {
    let columns = LeaseColumns::read(row)
        .map_err(|error| StoreError::corrupt(format!("a lease cannot be read: {error}")))?;
    columns.into_stored_lease().ok_or_else(|| StoreError::corrupt("a lease has invalid values"))
}

/// The columns of a lease, grouped by type.
struct LeaseColumns {
    lease: Vec<u8>,
    /// Tenant, kind, label, meta, state.
    texts: [Option<String>; 5],
    names: Vec<String>,
    /// Start, end, buffer before, buffer after; only of a slot.
    range: [Option<i64>; 4],
    /// Fence, version, acquired, expires, hold until, ttl, due, cool until.
    numbers: [i64; 8],
    /// Digests of the request id and of its content.
    request: [Option<Vec<u8>>; 2],
}

impl LeaseColumns {
    fn read(row: &Row) -> Result<Self, Error> {
        let text = |at: usize| row.try_get::<_, Option<String>>(at);
        let side = |at: usize| row.try_get::<_, Option<i64>>(at);
        let number = |at: usize| row.try_get::<_, i64>(at);
        let bytes = |at: usize| row.try_get::<_, Option<Vec<u8>>>(at);
        Ok(Self {
            lease: row.try_get(0)?,
            texts: [text(2)?, text(3)?, text(10)?, text(11)?, text(16)?],
            names: row.try_get(4)?,
            range: [side(5)?, side(6)?, side(7)?, side(8)?],
            numbers: [
                number(1)?,
                number(9)?,
                number(12)?,
                number(13)?,
                number(14)?,
                number(15)?,
                number(19)?,
                number(20)?,
            ],
            request: [bytes(17)?, bytes(18)?],
        })
    }

    fn into_stored_lease(self) -> Option<StoredLease> {
        let [tenant, kind, label, meta, state] = self.texts;
        let [fence, version, acquired, expires, hold_until, ttl, due, cool_until] = self.numbers;
        let kind = kind?;
        let state = state?;
        let state = STATES.into_iter().find(|one| one.as_str() == state)?;
        let request = match self.request {
            [Some(id_digest), Some(content_digest)] => {
                Some((id_digest.try_into().ok()?, content_digest.try_into().ok()?))
            }
            _ => None,
        };
        let lease = Lease {
            key: LeaseKey::from_bytes(self.lease.try_into().ok()?),
            fence,
            target: target(tenant.as_deref(), &kind, &self.names, self.range),
            kind: kind.into(),
            version,
            label: label.map(Into::into),
            meta: meta.map(Into::into),
            acquired_at: Time::from_micros(acquired),
            expires_at: Time::from_micros(expires),
            hold_until: Time::from_micros(hold_until),
            ttl: Span::from_micros(ttl),
            state,
        };
        let due = Time::from_micros(due);
        let cool_until = Time::from_micros(cool_until);
        Some(StoredLease { lease, request, due, cool_until })
    }
}

/// What a lease takes: a range of time in calendars if all four numbers are there, else names.
fn target(
    tenant: Option<&str>,
    kind: &str,
    names: &[String],
    range: [Option<i64>; 4],
) -> LeaseTarget {
    let tenant = || tenant.map(Box::from);
    match range {
        [Some(start), Some(end), Some(before), Some(after)] => {
            let name = |name: &String| CalendarName { tenant: tenant(), calendar: (**name).into() };
            let range = TimeRange {
                start: Time::from_micros(start),
                end: Time::from_micros(end),
                before: Span::from_micros(before),
                after: Span::from_micros(after),
            };
            LeaseTarget::Slot(names.iter().map(|one| Arc::new(name(one))).collect(), range)
        }
        _ => {
            let name = |key: &String| LockName {
                tenant: tenant(),
                kind: kind.into(),
                key: (**key).into(),
            };
            LeaseTarget::Names(names.iter().map(|one| Arc::new(name(one))).collect())
        }
    }
}
