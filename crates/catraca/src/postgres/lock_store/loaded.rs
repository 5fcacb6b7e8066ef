//! The loaded part of a namespace, and the application of an operation to it with core's rules.
//!
//! There is one rule besides core's: after a failover or a restored backup, kinds with a grace
//! period are not granted while leases that were lost may still be in force.

use std::collections::BTreeMap;

use catraca_core::lock::persistence::PersistedVersion;
use catraca_core::lock::requests::Acquire;
use catraca_core::lock::table::{PartialLockTable, StoredLease};
use catraca_core::lock::{LeaseKey, LockOp, LockReply, LockTable};
use catraca_core::time::{Span, Time};
use tokio_postgres::{Error, Row};

use super::load_plan::{self, LoadPlan};
use super::write_plan::NamespaceBefore;
use super::{LockStatement, QueuedLockOp, lease_row};
use crate::store::StoreError;

/// The part of a namespace that can affect an operation.
pub(super) struct LoadedNamespace {
    pub now: Time,
    /// The last fence.
    pub fence: i64,
    /// How many leases the namespace has in total, loaded or not.
    lease_count: i64,
    /// How many versions it has in total.
    version_count: i64,
    /// When a change of the server's timeline was last noticed.
    timeline_changed: Option<Time>,
    leases: BTreeMap<LeaseKey, StoredLease>,
    versions: Vec<PersistedVersion>,
}

/// A reply, and the statements to commit before it is sent.
pub(super) type AppliedOp = (Result<LockReply, StoreError>, Vec<LockStatement>);

impl LoadedNamespace {
    /// Reads the results of the first round trip: the row of the namespace, `lease_results` results
    /// with leases, then versions if `has_versions`.
    pub(super) fn read(
        call: &QueuedLockOp,
        results: &mut impl Iterator<Item = Vec<Row>>,
        lease_results: usize,
        has_versions: bool,
    ) -> Result<Self, StoreError> {
        // A result that is missing must not look like a namespace without leases: a name would be
        // granted twice.
        let mut next = || results.next().ok_or_else(StoreError::mismatched_reply);
        let rows = next()?;
        let row = rows.first().ok_or_else(StoreError::mismatched_reply)?;
        let mut loaded = Self::from_namespace_row(row).map_err(unreadable)?;
        for _ in 0..lease_results {
            loaded.add_leases(&next()?)?;
        }
        if has_versions && let LockOp::Acquire { request, .. } = &call.op {
            let rows = next()?;
            let versions = read_versions(&call.namespace, request, &rows);
            loaded.versions = versions.map_err(unreadable)?;
        }
        Ok(loaded)
    }

    fn from_namespace_row(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            now: Time::from_micros(row.try_get(0)?),
            fence: row.try_get(1)?,
            lease_count: row.try_get(2)?,
            version_count: row.try_get(3)?,
            timeline_changed: row.try_get::<_, Option<i64>>(4)?.map(Time::from_micros),
            leases: BTreeMap::new(),
            versions: Vec::new(),
        })
    }

    /// Adds the leases of a result.
    pub(super) fn add_leases(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        for row in rows {
            let stored = lease_row::read(row)?;
            self.leases.insert(stored.lease.key, stored);
        }
        Ok(())
    }

    /// What must still be loaded, now that the lease of the proof is known.
    pub(super) fn further_load(&self, namespace: &str, op: &LockOp) -> Option<LockStatement> {
        let stored = self.leases.values().next()?;
        LoadPlan::for_lease(namespace, op, &stored.lease.target)
    }

    /// Whether this transaction noticed the change of timeline, and has written it.
    pub(super) fn found_new_timeline(&self) -> bool {
        self.timeline_changed == Some(self.now)
    }

    /// Applies the operation.
    pub(super) fn apply(self, call: &QueuedLockOp) -> AppliedOp {
        let now = self.now;
        let fence = self.fence;
        let not_loaded =
            |all: i64, loaded: usize| usize::try_from(all).unwrap_or(0).saturating_sub(loaded);
        let mut table = LockTable::from_partial(PartialLockTable {
            now,
            fence,
            elsewhere: not_loaded(self.lease_count, self.leases.len()),
            versions_elsewhere: not_loaded(self.version_count, self.versions.len()),
            leases: self.leases.values().cloned().collect(),
            versions: self.versions,
        });
        let reply = table.apply(&call.op, now);
        // Every grant gets a new fence, also a move and a slot that is revived. Nothing was written
        // yet, so a grant inside the grace period is simply not written.
        let is_grant = table.fence() > fence;
        let changed = self.timeline_changed.filter(|_| is_grant);
        if let Some(error) = changed.and_then(|at| grace_period_error(&call.op, at, now)) {
            return (Err(error), Vec::new());
        }
        let namespace = call.namespace.clone();
        let has_versions = self.version_count > 0;
        let before = NamespaceBefore { namespace, now, fence, has_versions, leases: self.leases };
        let statements = before.statements(&call.op, &reply.outcome, &mut table);
        (Ok(reply), statements)
    }
}

/// The refusal while leases that were lost may still be in force: for the operation's grace after
/// the change of timeline was noticed.
fn grace_period_error(op: &LockOp, changed: Time, now: Time) -> Option<StoreError> {
    let grace = match op {
        LockOp::Acquire { request, .. } => request.lease.grace,
        LockOp::Hold(request) => request.lease.grace,
        LockOp::Relocate(request) => request.grace,
        LockOp::Confirm { grace, .. } => *grace,
        _ => Span::ZERO,
    };
    let safe = changed.after(grace);
    (now < safe).then(|| {
        StoreError::unavailable(format!(
            "no locks are granted yet: PostgreSQL failed over or a backup was restored; leases \
             that it may have lost run out within {} s",
            safe.since(now).ceil_secs()
        ))
    })
}

/// The stored versions of the names of a request.
fn read_versions(
    namespace: &str,
    request: &Acquire,
    rows: &[Row],
) -> Result<Vec<PersistedVersion>, Error> {
    let names = load_plan::requested_names(request);
    let mut versions = Vec::new();
    for row in rows {
        let digest: Vec<u8> = row.try_get(0)?;
        let name = names.iter().find(|name| name.digest(namespace).0[..] == digest[..]);
        let version = row.try_get(1)?;
        let until = Time::from_micros(row.try_get(2)?);
        versions.extend(name.map(|name| PersistedVersion { name: name.clone(), version, until }));
    }
    Ok(versions)
}

fn unreadable(error: Error) -> StoreError {
    StoreError::corrupt(error.to_string())
}
