//! What a transaction has found, and what the rules make of it.
//!
//! Must not hold a rule of its own but one: while leases that were lost may be in force, nothing is
//! granted of a kind that wants to wait that out.

use std::collections::BTreeMap;

use catraca_core::lock::book::{Part, StoredLease};
use catraca_core::lock::kept::KeptVersion;
use catraca_core::lock::op::Acquire;
use catraca_core::lock::{Book, LeaseKey, LockOp, LockReply};
use catraca_core::time::{Span, Time};
use tokio_postgres::{Error, Row};

use super::need::{self, Need};
use super::put::Before;
use super::{LockAsk, Statement, row};
use crate::store::StoreError;

/// A namespace as far as an operation can meet it.
pub(super) struct Seen {
    pub now: Time,
    pub fence: i64,
    kept: i64,
    versions_kept: i64,
    /// When the server's history last became another one.
    changed: Option<Time>,
    leases: BTreeMap<LeaseKey, StoredLease>,
    versions: Vec<KeptVersion>,
}

/// A reply, and what to write before it is given.
pub(super) type Done = (Result<LockReply, StoreError>, Vec<Statement>);

impl Seen {
    /// Reads the room, so many answers with leases, and then versions.
    pub(super) fn read(
        ask: &LockAsk,
        answers: &mut impl Iterator<Item = Vec<Row>>,
        leases: usize,
        versions: bool,
    ) -> Result<Self, StoreError> {
        let room = answers.next().unwrap_or_default();
        let room = room.first().ok_or_else(StoreError::odd_reply)?;
        let mut seen = Self::room(room).map_err(odd)?;
        for _ in 0..leases {
            seen.add(&answers.next().unwrap_or_default())?;
        }
        if let (true, LockOp::Acquire { asked, .. }) = (versions, &ask.op) {
            let rows = answers.next().unwrap_or_default();
            seen.versions = versions_of(&ask.namespace, asked, &rows).map_err(odd)?;
        }
        Ok(seen)
    }

    fn room(room: &Row) -> Result<Self, Error> {
        Ok(Self {
            now: Time::from_micros(room.try_get(0)?),
            fence: room.try_get(1)?,
            kept: room.try_get(2)?,
            versions_kept: room.try_get(3)?,
            changed: room.try_get::<_, Option<i64>>(4)?.map(Time::from_micros),
            leases: BTreeMap::new(),
            versions: Vec::new(),
        })
    }

    /// More leases.
    pub(super) fn add(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        for row in rows {
            let stored = row::read(row)?;
            self.leases.insert(stored.view.key, stored);
        }
        Ok(())
    }

    /// What else is needed, now that the lease of a proof is known.
    pub(super) fn about(&self, namespace: &str, op: &LockOp) -> Option<Statement> {
        let stored = self.leases.values().next()?;
        Need::about(namespace, op, &stored.view.what)
    }

    /// Whether this very transaction found that the history is another one.
    pub(super) fn is_another(&self) -> bool {
        self.changed == Some(self.now)
    }

    /// Lets the rules do the operation.
    pub(super) fn apply(self, ask: &LockAsk) -> Done {
        let (now, fence, changed) = (self.now, self.fence, self.changed);
        let beside = |all: i64, here: usize| usize::try_from(all).unwrap_or(0).saturating_sub(here);
        let mut book = Book::of(Part {
            now,
            fence,
            elsewhere: beside(self.kept, self.leases.len()),
            versions_elsewhere: beside(self.versions_kept, self.versions.len()),
            leases: self.leases.values().cloned().collect(),
            versions: self.versions,
        });
        let reply = book.apply(&ask.op, now);
        // Whatever takes something gets a number: a grant, a move, a slot that is taken anew.
        let takes = book.fence() > fence;
        if let Some(refused) = changed.filter(|_| takes).and_then(|at| careful(&ask.op, at, now)) {
            return (Err(refused), Vec::new());
        }
        let namespace = ask.namespace.clone();
        let has_versions = self.versions_kept > 0;
        let before = Before { namespace, now, fence, has_versions, leases: self.leases };
        let statements = before.changes(&ask.op, &reply.told, &mut book);
        (Ok(reply), statements)
    }
}

/// Why nothing is granted yet: leases that were lost may be in force.
fn careful(op: &LockOp, changed: Time, now: Time) -> Option<StoreError> {
    let grace = match op {
        LockOp::Acquire { asked, .. } => asked.lease.grace,
        LockOp::Hold(asked) => asked.lease.grace,
        LockOp::Relocate(asked) => asked.grace,
        LockOp::Confirm { grace, .. } => *grace,
        _ => Span::ZERO,
    };
    let safe = changed.after(grace);
    (now < safe).then(|| {
        StoreError::unavailable(format!(
            "another PostgreSQL took over, or a backup came back: leases that it may have lost \
             run out within {} s",
            safe.since(now).ceil_secs()
        ))
    })
}

fn versions_of(namespace: &str, asked: &Acquire, rows: &[Row]) -> Result<Vec<KeptVersion>, Error> {
    let names = need::names(asked);
    let mut versions = Vec::new();
    for row in rows {
        let mark: Vec<u8> = row.try_get(0)?;
        let name = names.iter().find(|name| name.mark(namespace).0[..] == mark[..]);
        let (version, until) = (row.try_get(1)?, Time::from_micros(row.try_get(2)?));
        versions.extend(name.map(|name| KeptVersion { name: name.clone(), version, until }));
    }
    Ok(versions)
}

fn odd(error: Error) -> StoreError {
    StoreError::corrupt(error.to_string())
}
