//! The statements that write the changes of an operation.
//!
//! Names and ranges are freed before others are taken, so that the constraints of the tables are
//! not violated in between. Rows that have not changed are not written.

use std::collections::BTreeMap;

use catraca_core::lock::counters::{AttemptCounts, AttemptCountsKey, OTHERS, ROWS_MAX};
use catraca_core::lock::persistence::PersistedVersion;
use catraca_core::lock::reply::{AcquireReply, LeaseState, LeaseTarget};
use catraca_core::lock::table::StoredLease;
use catraca_core::lock::{LeaseKey, LockOp, LockOutcome, LockTable, NameDigest};
use catraca_core::time::Time;
use tokio_postgres::types::Type;

use super::lease_row::{name_digests, upsert};
use super::listen::{CHANNEL, to_payload};
use super::load_plan::{bind_digest, bind_digests, bind_number};
use super::{LockStatement, bind};

const UPDATE_NAMESPACE: &str = "UPDATE catraca_store.lock_rooms \
    SET now = $2, fence = $3, kept = kept + $4 WHERE namespace = $1";
const DELETE_LEASE: &str = "DELETE FROM catraca_store.leases WHERE namespace = $1 AND lease = $2";
const FREE_NAMES: &str = "DELETE FROM catraca_store.lock_names WHERE namespace = $1 AND lease = $2";
const FREE_RANGES: &str = "DELETE FROM catraca_store.slots WHERE namespace = $1 AND lease = $2";
/// Frees names that were still taken because an operator ended their lease, and whose cool-down is
/// over.
const COOLED: &str = "DELETE FROM catraca_store.lock_names AS n USING catraca_store.leases AS l \
    WHERE n.name = ANY ($1) AND l.namespace = n.namespace AND l.lease = n.lease \
    AND l.state NOT IN ('held', 'confirmed')";
const TAKE_NAMES: &str = "INSERT INTO catraca_store.lock_names (name, namespace, lease) \
    SELECT unnest($1), $2, $3";
const TAKE_RANGES: &str = "INSERT INTO catraca_store.slots (calendar, during, namespace, lease) \
    SELECT unnest($1), int8range($2, $3), $4, $5";
/// Raises a version, and keeps the one before it in case the grant is undone. `xmax = 0` holds for
/// a row that was inserted, not updated: only then the number of versions grows.
const RAISE_VERSION: &str = "WITH raised AS (INSERT INTO catraca_store.lock_versions AS v \
    (name, namespace, version, until, lease) VALUES ($1, $2, $3, $4, $5) \
    ON CONFLICT (name) DO UPDATE SET was_version = v.version, was_until = v.until, \
    version = excluded.version, until = excluded.until, lease = excluded.lease \
    RETURNING xmax = 0 AS fresh) UPDATE catraca_store.lock_rooms \
    SET versions = versions + 1 WHERE namespace = $2 AND (SELECT fresh FROM raised)";
/// Deletes the versions that are forgotten by now.
const DELETE_OLD_VERSIONS: &str = "WITH over AS (DELETE FROM catraca_store.lock_versions \
    WHERE namespace = $1 AND until <= $2 RETURNING 1) UPDATE catraca_store.lock_rooms \
    SET versions = versions - (SELECT count(*) FROM over) \
    WHERE namespace = $1 AND EXISTS (SELECT FROM over)";
/// Undo of a grant: deletes the versions that it created.
const UNDO_NEW_VERSIONS: &str = "WITH undone AS (DELETE FROM catraca_store.lock_versions \
    WHERE namespace = $1 AND lease = $2 AND was_version IS NULL RETURNING 1) \
    UPDATE catraca_store.lock_rooms SET versions = versions - (SELECT count(*) FROM undone) \
    WHERE namespace = $1 AND EXISTS (SELECT FROM undone)";
/// Undo of a grant: restores the versions that it raised.
const UNDO_RAISED_VERSIONS: &str = "UPDATE catraca_store.lock_versions SET version = was_version, \
    until = was_until, lease = NULL WHERE namespace = $1 AND lease = $2";
const COUNT: &str = "SELECT catraca_store.lock_count($1, $2, $3, $4, $5, $6)";
const NOTIFY: &str = "SELECT pg_notify($1, mark) FROM unnest($2) AS mark";

/// The index of each count in the parameter of [`COUNT`].
const SUCCESS: usize = 0;
const CONFLICTS: usize = 1;
const RELEASED: usize = 2;
const EXPIRED: usize = 3;
const FORCED: usize = 4;
const UNDONE: usize = 5;

/// The most freed names that one transaction announces; if there are more, waiters check all names.
const ANNOUNCED_MAX: usize = 256;

/// The loaded part of a namespace before the operation.
pub(super) struct NamespaceBefore {
    pub namespace: String,
    pub now: Time,
    pub fence: i64,
    /// Whether the namespace has any versions.
    pub has_versions: bool,
    pub leases: BTreeMap<LeaseKey, StoredLease>,
}

impl NamespaceBefore {
    /// The statements that bring the tables to the state of the lock table.
    pub(super) fn statements(
        &self,
        op: &LockOp,
        outcome: &LockOutcome,
        table: &mut LockTable,
    ) -> Vec<LockStatement> {
        let after = table.stored_leases();
        let mut changes = LeaseChanges::new(&self.namespace, self.now);
        for (key, before) in &self.leases {
            if after.get(key) != Some(before) {
                changes.free_claims(*key, before, after.get(key));
            }
        }
        for (key, stored) in &after {
            if self.leases.get(key) != Some(stored) {
                changes.write_lease(self.leases.get(key), stored);
                changes.count(self.leases.get(key), Some(stored), op);
            }
        }
        for (key, before) in self.leases.iter().filter(|(key, _)| !after.contains_key(key)) {
            changes.delete_lease(*key);
            changes.count(Some(before), None, op);
        }
        changes.count_conflict(op, outcome);
        if let LockOutcome::Acquired(AcquireReply::Granted(lease)) = outcome {
            changes.raise_versions(lease.key, &table.raised_versions(lease));
        }
        if self.has_versions && matches!(op, LockOp::Sweep) {
            let values = vec![bind_digest(changes.ns), bind_number(self.now.micros())];
            changes.cleanup.push(LockStatement { sql: DELETE_OLD_VERSIONS, values });
        }
        if let LockOp::Undo(key) = op
            && self.leases.get(key).is_some_and(|before| is_in_force(before, self.now))
        {
            // Restores the versions that the undone grant raised.
            for sql in [UNDO_NEW_VERSIONS, UNDO_RAISED_VERSIONS] {
                let values = changes.lease_key(*key).into();
                changes.later.push(LockStatement { sql, values });
            }
        }
        changes.announce_freed(table);
        changes.finish(self.fence, table.fence())
    }
}

/// Whether a lease is in force at an instant. The state of its row may be out of date: expired
/// leases are only updated when an operation loads them.
fn is_in_force(stored: &StoredLease, now: Time) -> bool {
    stored.lease.state.is_live() && now < stored.due
}

/// Collects the statements. `first` frees, `later` takes and writes.
struct LeaseChanges<'n> {
    namespace: &'n str,
    ns: NameDigest,
    now: Time,
    first: Vec<LockStatement>,
    later: Vec<LockStatement>,
    /// Statements on which the others do not depend.
    cleanup: Vec<LockStatement>,
    counts: BTreeMap<AttemptCountsKey, [i64; 6]>,
    /// By how much the number of leases changes.
    lease_count_change: i64,
}

impl<'n> LeaseChanges<'n> {
    fn new(namespace: &'n str, now: Time) -> Self {
        let ns = NameDigest::of_namespace(namespace);
        Self {
            namespace,
            ns,
            now,
            first: Vec::new(),
            later: Vec::new(),
            cleanup: Vec::new(),
            counts: BTreeMap::new(),
            lease_count_change: 0,
        }
    }

    /// Namespace and digest of the proof: the key of a lease's row.
    fn lease_key(&self, key: LeaseKey) -> [super::BoundValue; 2] {
        [bind_digest(self.ns), bind(key.to_bytes().to_vec(), Type::BYTEA)]
    }

    /// Frees the names or ranges of a lease, unless it still takes the same.
    fn free_claims(&mut self, key: LeaseKey, before: &StoredLease, after: Option<&StoredLease>) {
        if after.is_some_and(|after| self.takes_the_same(before, after)) {
            return;
        }
        let sql = if matches!(before.lease.target, LeaseTarget::Slot(..)) {
            FREE_RANGES
        } else {
            FREE_NAMES
        };
        self.first.push(LockStatement { sql, values: self.lease_key(key).into() });
    }

    /// Whether a lease takes the same names or range as before.
    fn takes_the_same(&self, before: &StoredLease, after: &StoredLease) -> bool {
        after.lease.target == before.lease.target && after.takes(self.now) && before.takes(self.now)
    }

    /// Writes a lease, and the names or ranges that it takes.
    fn write_lease(&mut self, before: Option<&StoredLease>, stored: &StoredLease) {
        self.later.push(upsert(self.ns, stored));
        let is_unchanged = before.is_some_and(|before| self.takes_the_same(before, stored));
        if !stored.takes(self.now) || is_unchanged {
            return;
        }
        let digests = name_digests(self.namespace, &stored.lease);
        let [ns, lease] = self.lease_key(stored.lease.key);
        match &stored.lease.target {
            LeaseTarget::Names(_) => {
                let values = vec![bind_digests(&digests)];
                self.first.push(LockStatement { sql: COOLED, values });
                let values = vec![bind_digests(&digests), ns, lease];
                self.later.push(LockStatement { sql: TAKE_NAMES, values });
            }
            LeaseTarget::Slot(_, range) => {
                let (start, end) = range.occupied_range();
                let start = bind_number(start.micros());
                let end = bind_number(end.micros());
                let values = vec![bind_digests(&digests), start, end, ns, lease];
                self.later.push(LockStatement { sql: TAKE_RANGES, values });
            }
        }
    }

    fn delete_lease(&mut self, key: LeaseKey) {
        self.lease_count_change -= 1;
        self.first.push(LockStatement { sql: DELETE_LEASE, values: self.lease_key(key).into() });
    }

    /// Counts what happened to a lease. An expired one may have been replaced by another one of the
    /// same proof, which need not be of the same kind: that is an expiry and a success.
    fn count(&mut self, before: Option<&StoredLease>, after: Option<&StoredLease>, op: &LockOp) {
        if before.is_none() {
            self.lease_count_change += 1;
        }
        let live_before = before.filter(|stored| stored.lease.state.is_live());
        let live_after = after.filter(|stored| stored.lease.state.is_live());
        match (live_before, live_after) {
            (Some(old), Some(new)) if !is_in_force(old, self.now) => {
                self.counts_of(old)[EXPIRED] += 1;
                self.counts_of(new)[SUCCESS] += 1;
            }
            (Some(_), Some(_)) | (None, None) => {}
            (None, Some(new)) => self.counts_of(new)[SUCCESS] += 1,
            // An undone grant is not a success.
            (Some(old), None) if matches!(op, LockOp::Undo(_)) && is_in_force(old, self.now) => {
                let counts = self.counts_of(old);
                counts[SUCCESS] -= 1;
                counts[UNDONE] += 1;
            }
            (Some(old), None) => {
                let end = match after.map(|stored| stored.lease.state) {
                    Some(LeaseState::Released) => RELEASED,
                    Some(LeaseState::Forced) => FORCED,
                    _ => EXPIRED,
                };
                self.counts_of(old)[end] += 1;
            }
        }
    }

    fn counts_of(&mut self, stored: &StoredLease) -> &mut [i64; 6] {
        let lease = &stored.lease;
        self.counts.entry((lease.tenant().map(Box::from), lease.kind.clone())).or_default()
    }

    /// Counts an attempt that ended with a conflict.
    fn count_conflict(&mut self, op: &LockOp, outcome: &LockOutcome) {
        let is_conflict = matches!(
            outcome,
            LockOutcome::Acquired(AcquireReply::Conflict(_) | AcquireReply::Stale { .. })
        );
        let (tenant, kind) = match op {
            LockOp::Acquire { request, counts_conflict: true } if is_conflict => {
                (&request.tenant, &request.kind)
            }
            LockOp::Hold(request) if is_conflict => (&request.tenant, &request.kind),
            LockOp::CountConflict { tenant, kind } => (tenant, kind),
            _ => return,
        };
        self.counts.entry((tenant.clone(), kind.clone())).or_default()[CONFLICTS] += 1;
    }

    fn raise_versions(&mut self, key: LeaseKey, raised: &[PersistedVersion]) {
        for version in raised {
            let [ns, lease] = self.lease_key(key);
            let values = vec![
                bind_digest(version.name.digest(self.namespace)),
                ns,
                bind_number(version.version),
                bind_number(version.until.micros()),
                lease,
            ];
            self.later.push(LockStatement { sql: RAISE_VERSION, values });
        }
    }

    /// Announces the freed names with the commit. An empty payload means any name.
    fn announce_freed(&mut self, table: &mut LockTable) {
        let freed = table.take_freed();
        let announced = freed.iter().take(ANNOUNCED_MAX);
        let mut payloads: Vec<String> =
            announced.map(|name| to_payload(name.digest(self.namespace))).collect();
        if freed.len() > ANNOUNCED_MAX {
            payloads.push(String::new());
        }
        if !payloads.is_empty() {
            let values = vec![bind(CHANNEL, Type::TEXT), bind(payloads, Type::TEXT_ARRAY)];
            self.later.push(LockStatement { sql: NOTIFY, values });
        }
    }

    /// All statements in order. If nothing has changed, the row of the namespace is not written.
    fn finish(mut self, old_fence: i64, new_fence: i64) -> Vec<LockStatement> {
        self.counts.retain(|_, add| add.iter().any(|count| *count != 0));
        let is_empty = self.first.is_empty() && self.later.is_empty() && self.counts.is_empty();
        if is_empty && old_fence == new_fence {
            return self.cleanup;
        }
        let values = vec![
            bind_digest(self.ns),
            bind_number(self.now.micros()),
            bind_number(new_fence),
            bind_number(self.lease_count_change),
        ];
        self.later.push(LockStatement { sql: UPDATE_NAMESPACE, values });
        let counts = std::mem::take(&mut self.counts);
        for ((tenant, kind), add) in counts {
            let values = vec![
                bind_digest(self.ns),
                bind(tenant.map(String::from), Type::TEXT),
                bind(String::from(kind), Type::TEXT),
                bind_number(i64::try_from(ROWS_MAX).unwrap_or(i64::MAX)),
                bind(OTHERS, Type::TEXT),
                bind(add.to_vec(), Type::INT8_ARRAY),
            ];
            self.later.push(LockStatement { sql: COUNT, values });
        }
        self.first.append(&mut self.later);
        self.first.append(&mut self.cleanup);
        self.first
    }
}

/// Reads a row of counts. How many leases are active follows from the other counts.
pub(super) fn read_counts(
    row: &tokio_postgres::Row,
) -> Result<(AttemptCountsKey, AttemptCounts), tokio_postgres::Error> {
    let tenant: Option<String> = row.try_get(0)?;
    let kind: String = row.try_get(1)?;
    let count = |at: usize| row.try_get::<_, i64>(at).map(|count| count.max(0).unsigned_abs());
    let success = count(2)?;
    let conflicts = count(3)?;
    let released = count(4)?;
    let expired = count(5)?;
    let forced = count(6)?;
    let undone = count(7)?;
    let active = success.saturating_sub(released + expired + forced);
    let counts = AttemptCounts { success, conflicts, active, released, expired, forced, undone };
    Ok(((tenant.map(Into::into), kind.into()), counts))
}
