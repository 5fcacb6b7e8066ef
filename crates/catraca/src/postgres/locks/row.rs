//! A lease as a row of the table, and back.
//!
//! Must not take a row for less than it is: one that cannot be read ends the operation.

use std::sync::Arc;

use catraca_core::lock::book::StoredLease;
use catraca_core::lock::op::Range;
use catraca_core::lock::reply::{State, View, What};
use catraca_core::lock::{CalendarName, LeaseKey, LockName, Mark};
use catraca_core::time::{Span, Time};
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

use super::{Statement, bound};
use crate::store::StoreError;

const KEEP: &str = "INSERT INTO catraca_store.leases (namespace, lease, fence, tenant, kind, \
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

const STATES: [State; 5] =
    [State::Held, State::Confirmed, State::Released, State::Expired, State::Forced];

/// Writes a lease.
pub(super) fn keep(namespace: Mark, stored: &StoredLease) -> Statement {
    let view = &stored.view;
    let (names, range) = parts(view);
    let range = range.map(|range| {
        let (start, end) = (range.start.micros(), range.end.micros());
        [start, end, range.before.micros(), range.after.micros()]
    });
    let side = |place: usize| range.map(|range| range[place]);
    let text = |text: Option<&str>| text.map(str::to_owned);
    let half = |digest: [u8; 16]| digest.to_vec();
    let values = vec![
        bound(namespace.0.to_vec(), Type::BYTEA),
        bound(view.key.to_bytes().to_vec(), Type::BYTEA),
        bound(view.fence, Type::INT8),
        bound(text(view.tenant()), Type::TEXT),
        bound(view.kind.to_string(), Type::TEXT),
        bound(names, Type::TEXT_ARRAY),
        bound(side(0), Type::INT8),
        bound(side(1), Type::INT8),
        bound(side(2), Type::INT8),
        bound(side(3), Type::INT8),
        bound(view.version, Type::INT8),
        bound(text(view.label.as_deref()), Type::TEXT),
        bound(text(view.meta.as_deref()), Type::TEXT),
        bound(view.acquired_at.micros(), Type::INT8),
        bound(view.expires_at.micros(), Type::INT8),
        bound(view.hold_until.micros(), Type::INT8),
        bound(view.ttl.micros(), Type::INT8),
        bound(view.state.as_str(), Type::TEXT),
        bound(stored.request.map(|(name, _)| half(name)), Type::BYTEA),
        bound(stored.request.map(|(_, asked)| half(asked)), Type::BYTEA),
        bound(stored.due.micros(), Type::INT8),
        bound(stored.cool_until.micros(), Type::INT8),
    ];
    Statement { sql: KEEP, values }
}

fn parts(view: &View) -> (Vec<String>, Option<Range>) {
    match &view.what {
        What::Names(names) => (names.iter().map(|name| name.key.to_string()).collect(), None),
        What::Slot(names, range) => {
            (names.iter().map(|name| name.calendar.to_string()).collect(), Some(*range))
        }
    }
}

/// What the names, or calendars, of a lease are found by.
pub(super) fn marks(namespace: &str, view: &View) -> Vec<Mark> {
    match &view.what {
        What::Names(names) => names.iter().map(|name| name.mark(namespace)).collect(),
        What::Slot(names, _) => names.iter().map(|name| name.mark(namespace)).collect(),
    }
}

/// Reads a lease.
pub(super) fn read(row: &Row) -> Result<StoredLease, StoreError> {
    let columns = Columns::read(row)
        .map_err(|error| StoreError::corrupt(format!("a lease that cannot be read: {error}")))?;
    columns.stored().ok_or_else(|| StoreError::corrupt("a lease that makes no sense"))
}

struct Columns {
    lease: Vec<u8>,
    texts: [Option<String>; 5],
    names: Vec<String>,
    range: [Option<i64>; 4],
    numbers: [i64; 8],
    request: [Option<Vec<u8>>; 2],
}

impl Columns {
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

    fn stored(self) -> Option<StoredLease> {
        let [tenant, kind, label, meta, state] = self.texts;
        let [fence, version, acquired, expires, hold_until, ttl, due, cool_until] = self.numbers;
        let (kind, state) = (kind?, state?);
        let state = STATES.into_iter().find(|one| one.as_str() == state)?;
        let request = match self.request {
            [Some(name), Some(asked)] => Some((name.try_into().ok()?, asked.try_into().ok()?)),
            _ => None,
        };
        let view = View {
            key: LeaseKey::from_bytes(self.lease.try_into().ok()?),
            fence,
            what: what(tenant.as_deref(), &kind, &self.names, self.range),
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
        let (due, cool_until) = (Time::from_micros(due), Time::from_micros(cool_until));
        Some(StoredLease { view, request, due, cool_until })
    }
}

fn what(tenant: Option<&str>, kind: &str, names: &[String], range: [Option<i64>; 4]) -> What {
    let tenant = || tenant.map(Box::from);
    match range {
        [Some(start), Some(end), Some(before), Some(after)] => {
            let name = |name: &String| CalendarName { tenant: tenant(), calendar: (**name).into() };
            let range = Range {
                start: Time::from_micros(start),
                end: Time::from_micros(end),
                before: Span::from_micros(before),
                after: Span::from_micros(after),
            };
            What::Slot(names.iter().map(|one| Arc::new(name(one))).collect(), range)
        }
        _ => {
            let name = |key: &String| LockName {
                tenant: tenant(),
                kind: kind.into(),
                key: (**key).into(),
            };
            What::Names(names.iter().map(|one| Arc::new(name(one))).collect())
        }
    }
}
