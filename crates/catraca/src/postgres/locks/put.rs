//! What an operation has changed, as statements.
//!
//! What became free is given up before anything is taken, so that the constraints of the tables see
//! no overlap that there is not. Must not write what has not changed.

use std::collections::BTreeMap;

use catraca_core::lock::book::StoredLease;
use catraca_core::lock::kept::KeptVersion;
use catraca_core::lock::reply::{Acquired, State, What};
use catraca_core::lock::tally::{Counts, OTHERS, ROWS_MAX, Row};
use catraca_core::lock::{Book, LeaseKey, LockOp, LockTold, Mark};
use catraca_core::time::Time;
use tokio_postgres::types::Type;

use super::listen::{CHANNEL, text};
use super::need::{many, mark, number};
use super::row::{keep, marks};
use super::{Statement, bound};

const ROOM: &str = "UPDATE catraca_store.lock_rooms SET now = $2, fence = $3, kept = kept + $4 \
    WHERE namespace = $1";
const FORGET: &str = "DELETE FROM catraca_store.leases WHERE namespace = $1 AND lease = $2";
const UNNAME: &str = "DELETE FROM catraca_store.lock_names WHERE namespace = $1 AND lease = $2";
const VACATE: &str = "DELETE FROM catraca_store.slots WHERE namespace = $1 AND lease = $2";
/// Names that stay taken for a while after an operator ended their lease, and are free by now.
const COOLED: &str = "DELETE FROM catraca_store.lock_names AS n USING catraca_store.leases AS l \
    WHERE n.name = ANY ($1) AND l.namespace = n.namespace AND l.lease = n.lease \
    AND l.state NOT IN ('held', 'confirmed')";
const NAME: &str = "INSERT INTO catraca_store.lock_names (name, namespace, lease) \
    SELECT unnest($1), $2, $3";
const OCCUPY: &str = "INSERT INTO catraca_store.slots (calendar, during, namespace, lease) \
    SELECT unnest($1), int8range($2, $3), $4, $5";
const VERSION: &str = "WITH raised AS (INSERT INTO catraca_store.lock_versions AS v \
    (name, namespace, version, until, lease) VALUES ($1, $2, $3, $4, $5) \
    ON CONFLICT (name) DO UPDATE SET was_version = v.version, was_until = v.until, \
    version = excluded.version, until = excluded.until, lease = excluded.lease \
    RETURNING xmax = 0 AS fresh) UPDATE catraca_store.lock_rooms \
    SET versions = versions + 1 WHERE namespace = $2 AND (SELECT fresh FROM raised)";
const VERSIONS_DUE: &str = "WITH over AS (DELETE FROM catraca_store.lock_versions \
    WHERE namespace = $1 AND until <= $2 RETURNING 1) UPDATE catraca_store.lock_rooms \
    SET versions = versions - (SELECT count(*) FROM over) \
    WHERE namespace = $1 AND EXISTS (SELECT FROM over)";
const NEVER_RAISED: &str = "WITH undone AS (DELETE FROM catraca_store.lock_versions \
    WHERE namespace = $1 AND lease = $2 AND was_version IS NULL RETURNING 1) \
    UPDATE catraca_store.lock_rooms SET versions = versions - (SELECT count(*) FROM undone) \
    WHERE namespace = $1 AND EXISTS (SELECT FROM undone)";
const LOWERED: &str = "UPDATE catraca_store.lock_versions SET version = was_version, \
    until = was_until, lease = NULL WHERE namespace = $1 AND lease = $2";
const COUNT: &str = "SELECT catraca_store.lock_count($1, $2, $3, $4, $5, $6)";
const TELL: &str = "SELECT pg_notify($1, mark) FROM unnest($2) AS mark";

/// Where each count is.
const SUCCESS: usize = 0;
const CONFLICTS: usize = 1;
const RELEASED: usize = 2;
const EXPIRED: usize = 3;
const FORCED: usize = 4;
const UNDONE: usize = 5;

/// Names of which one transaction tells; beyond, whoever waits is told to look.
const TOLD_MAX: usize = 256;

/// What was known before an operation.
pub(super) struct Before {
    pub namespace: String,
    pub now: Time,
    pub fence: i64,
    /// Whether there are any versions at all.
    pub has_versions: bool,
    pub leases: BTreeMap<LeaseKey, StoredLease>,
}

impl Before {
    /// Every statement that makes the tables say what the book says, unless nothing has changed.
    pub(super) fn changes(&self, op: &LockOp, told: &LockTold, book: &mut Book) -> Vec<Statement> {
        let after = book.stored();
        let mut changes = Changes::new(&self.namespace, self.now);
        for (key, before) in &self.leases {
            if after.get(key) != Some(before) {
                changes.give_up(*key, before, after.get(key));
            }
        }
        for (key, stored) in &after {
            if self.leases.get(key) != Some(stored) {
                changes.take(self.leases.get(key), stored);
                changes.count(self.leases.get(key), Some(stored), op);
            }
        }
        for (key, before) in self.leases.iter().filter(|(key, _)| !after.contains_key(key)) {
            changes.forget(*key);
            changes.count(Some(before), None, op);
        }
        changes.missed(op, told);
        if let LockTold::Acquired(Acquired::Granted(view)) = told {
            changes.versions(view.key, &book.raised(view));
        }
        if self.has_versions && matches!(op, LockOp::Sweep) {
            let values = vec![mark(changes.ns), number(self.now.micros())];
            changes.aside.push(Statement { sql: VERSIONS_DUE, values });
        }
        if let LockOp::Undo(key) = op
            && self.leases.get(key).is_some_and(|before| is_in_force(before, self.now))
        {
            for sql in [NEVER_RAISED, LOWERED] {
                let values = changes.lease(*key).into();
                changes.later.push(Statement { sql, values });
            }
        }
        changes.tell(book);
        changes.finish(self.fence, book.fence())
    }
}

/// Whether a lease is in force at an instant, and not only in a row that nobody has looked at.
fn is_in_force(stored: &StoredLease, now: Time) -> bool {
    stored.view.state.is_live() && now < stored.due
}

/// Statements in the making.
struct Changes<'n> {
    namespace: &'n str,
    ns: Mark,
    now: Time,
    first: Vec<Statement>,
    later: Vec<Statement>,
    /// What the rest does not depend on.
    aside: Vec<Statement>,
    counts: BTreeMap<Row, [i64; 6]>,
    kept: i64,
}

impl<'n> Changes<'n> {
    fn new(namespace: &'n str, now: Time) -> Self {
        let ns = Mark::of_namespace(namespace);
        let (first, later, aside, counts, kept) = Default::default();
        Self { namespace, ns, now, first, later, aside, counts, kept }
    }

    fn lease(&self, key: LeaseKey) -> [super::Bound; 2] {
        [mark(self.ns), bound(key.to_bytes().to_vec(), Type::BYTEA)]
    }

    /// Takes away the names or the time of a lease that has changed.
    fn give_up(&mut self, key: LeaseKey, before: &StoredLease, after: Option<&StoredLease>) {
        if after.is_some_and(|after| self.same(before, after)) {
            return;
        }
        let sql = if matches!(before.view.what, What::Slot(..)) { VACATE } else { UNNAME };
        self.first.push(Statement { sql, values: self.lease(key).into() });
    }

    /// Whether a lease takes what it took before.
    fn same(&self, before: &StoredLease, after: &StoredLease) -> bool {
        after.view.what == before.view.what && after.takes(self.now) && before.takes(self.now)
    }

    /// Writes a lease, and what it takes.
    fn take(&mut self, before: Option<&StoredLease>, stored: &StoredLease) {
        self.later.push(keep(self.ns, stored));
        if !stored.takes(self.now) || before.is_some_and(|before| self.same(before, stored)) {
            return;
        }
        let marks = marks(self.namespace, &stored.view);
        let [ns, lease] = self.lease(stored.view.key);
        match &stored.view.what {
            What::Names(_) => {
                self.first.push(Statement { sql: COOLED, values: vec![many(&marks)] });
                self.later.push(Statement { sql: NAME, values: vec![many(&marks), ns, lease] });
            }
            What::Slot(_, range) => {
                let (start, end) = range.taken();
                let (start, end) = (number(start.micros()), number(end.micros()));
                let values = vec![many(&marks), start, end, ns, lease];
                self.later.push(Statement { sql: OCCUPY, values });
            }
        }
    }

    fn forget(&mut self, key: LeaseKey) {
        self.kept -= 1;
        self.first.push(Statement { sql: FORGET, values: self.lease(key).into() });
    }

    /// Counts what became of a lease. One that was over may have made room for another one of the
    /// same proof, which need not be of the same kind.
    fn count(&mut self, before: Option<&StoredLease>, after: Option<&StoredLease>, op: &LockOp) {
        if before.is_none() {
            self.kept += 1;
        }
        let was = before.filter(|stored| stored.view.state.is_live());
        let is = after.filter(|stored| stored.view.state.is_live());
        match (was, is) {
            (Some(was), Some(is)) if !is_in_force(was, self.now) => {
                self.counts_of(was)[EXPIRED] += 1;
                self.counts_of(is)[SUCCESS] += 1;
            }
            (Some(_), Some(_)) | (None, None) => {}
            (None, Some(is)) => self.counts_of(is)[SUCCESS] += 1,
            (Some(was), None) if matches!(op, LockOp::Undo(_)) && is_in_force(was, self.now) => {
                let counts = self.counts_of(was);
                counts[SUCCESS] -= 1;
                counts[UNDONE] += 1;
            }
            (Some(was), None) => {
                let how = match after.map(|stored| stored.view.state) {
                    Some(State::Released) => RELEASED,
                    Some(State::Forced) => FORCED,
                    _ => EXPIRED,
                };
                self.counts_of(was)[how] += 1;
            }
        }
    }

    fn counts_of(&mut self, stored: &StoredLease) -> &mut [i64; 6] {
        let view = &stored.view;
        self.counts.entry((view.tenant().map(Box::from), view.kind.clone())).or_default()
    }

    /// Counts an attempt that met somebody.
    fn missed(&mut self, op: &LockOp, told: &LockTold) {
        let met =
            matches!(told, LockTold::Acquired(Acquired::Conflict(_) | Acquired::Stale { .. }));
        let row = match op {
            LockOp::Acquire { asked, counts: true } if met => (&asked.tenant, &asked.kind),
            LockOp::Hold(asked) if met => (&asked.tenant, &asked.kind),
            LockOp::Miss { tenant, kind } => (tenant, kind),
            _ => return,
        };
        self.counts.entry((row.0.clone(), row.1.clone())).or_default()[CONFLICTS] += 1;
    }

    fn versions(&mut self, key: LeaseKey, raised: &[KeptVersion]) {
        for kept in raised {
            let [ns, lease] = self.lease(key);
            let name = mark(kept.name.mark(self.namespace));
            let (version, until) = (number(kept.version), number(kept.until.micros()));
            let values = vec![name, ns, version, until, lease];
            self.later.push(Statement { sql: VERSION, values });
        }
    }

    fn tell(&mut self, book: &mut Book) {
        let freed = book.take_freed();
        let mut marks: Vec<String> =
            freed.iter().take(TOLD_MAX).map(|name| text(name.mark(self.namespace))).collect();
        if freed.len() > TOLD_MAX {
            marks.push(String::new());
        }
        if !marks.is_empty() {
            let values = vec![bound(CHANNEL, Type::TEXT), bound(marks, Type::TEXT_ARRAY)];
            self.later.push(Statement { sql: TELL, values });
        }
    }

    fn finish(mut self, fence: i64, now_fence: i64) -> Vec<Statement> {
        self.counts.retain(|_, add| add.iter().any(|count| *count != 0));
        let quiet = self.first.is_empty() && self.later.is_empty() && self.counts.is_empty();
        if quiet && fence == now_fence {
            return self.aside;
        }
        let values =
            vec![mark(self.ns), number(self.now.micros()), number(now_fence), number(self.kept)];
        self.later.push(Statement { sql: ROOM, values });
        let counts = std::mem::take(&mut self.counts);
        for ((tenant, kind), add) in counts {
            let values = vec![
                mark(self.ns),
                bound(tenant.map(String::from), Type::TEXT),
                bound(String::from(kind), Type::TEXT),
                number(i64::try_from(ROWS_MAX).unwrap_or(i64::MAX)),
                bound(OTHERS, Type::TEXT),
                bound(add.to_vec(), Type::INT8_ARRAY),
            ];
            self.later.push(Statement { sql: COUNT, values });
        }
        self.first.append(&mut self.later);
        self.first.append(&mut self.aside);
        self.first
    }
}

/// A row of counts as it was read.
pub(super) fn counted(row: &tokio_postgres::Row) -> Result<(Row, Counts), tokio_postgres::Error> {
    let (tenant, kind): (Option<String>, String) = (row.try_get(0)?, row.try_get(1)?);
    let number = |at: usize| row.try_get::<_, i64>(at).map(|count| count.max(0).unsigned_abs());
    let [success, conflicts, released, expired, forced, undone] =
        [number(2)?, number(3)?, number(4)?, number(5)?, number(6)?, number(7)?];
    let active = success.saturating_sub(released + expired + forced);
    let counts = Counts { success, conflicts, active, released, expired, forced, undone };
    Ok(((tenant.map(Into::into), kind.into()), counts))
}
