//! What an operation has to be told of a namespace: as few rows as can matter to it.
//!
//! Must not leave out a lease that the rules would meet.

use catraca_core::lock::book::look::BUSY_MAX;
use catraca_core::lock::op::{Acquire, Hold, Look, Range};
use catraca_core::lock::reply::What;
use catraca_core::lock::{CalendarName, LeaseKey, LockName, LockOp, Mark, SWEEP, VersionPolicy};
use catraca_core::time::Time;
use tokio_postgres::types::Type;

use super::{Bound, Statement, bound};

macro_rules! leases {
    ($from:literal) => {
        concat!(
            "SELECT l.lease, l.fence, l.tenant, l.kind, l.names, l.starts, l.ends, l.before, ",
            "l.after, l.version, l.label, l.meta, l.acquired, l.expires, l.hold_until, l.ttl, ",
            "l.state, l.request, l.asked, l.due, l.cool_until FROM ",
            $from
        )
    };
}

const BY_KEY: &str = leases!("catraca_store.leases AS l WHERE l.namespace = $1 AND l.lease = $2");
const BY_REQUEST: &str =
    leases!("catraca_store.leases AS l WHERE l.namespace = $1 AND l.request = $2");
const BY_NAME: &str = leases!(
    "catraca_store.lock_names AS n JOIN catraca_store.leases AS l USING (namespace, lease) \
     WHERE n.name = ANY ($1)"
);
const BY_RANGE: &str = leases!(
    "catraca_store.slots AS s JOIN catraca_store.leases AS l USING (namespace, lease) \
     WHERE s.calendar = ANY ($1) AND s.during && int8range($2, $3) ORDER BY s.during LIMIT $4"
);
/// Ranges that are not over, by the clock or the instant that was given.
const BUSY: &str = leases!(
    "catraca_store.slots AS s JOIN catraca_store.leases AS l USING (namespace, lease) \
     WHERE s.calendar = $1 AND s.during && int8range($2, $3) AND l.due > coalesce($5, \
     (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) ORDER BY s.during LIMIT $4"
);
const BY_FENCE: &str = leases!(
    "catraca_store.leases AS l WHERE l.namespace = $1 AND l.fence = $2 \
     AND l.state IN ('held', 'confirmed')"
);
const LISTED: &str = leases!(
    "catraca_store.leases AS l WHERE l.namespace = $1 AND l.fence > $2 AND l.due > $3 \
     AND l.state IN ('held', 'confirmed') ORDER BY l.fence LIMIT $4"
);
const CLEARED: &str = leases!(
    "catraca_store.leases AS l WHERE l.namespace = $1 AND l.fence > $2 AND l.due > $3 \
     AND l.state IN ('held', 'confirmed') AND l.fence <= $5 \
     AND l.tenant IS NOT DISTINCT FROM $6 ORDER BY l.fence LIMIT $4"
);
const DUE: &str = leases!(
    "catraca_store.leases AS l WHERE l.namespace = $1 AND l.due <= $2 ORDER BY l.due LIMIT $3"
);
const VERSIONS: &str =
    "SELECT name, version, until FROM catraca_store.lock_versions WHERE name = ANY ($1)";
const COUNTS: &str = "SELECT tenant, kind, success, conflicts, released, expired, forced, undone \
    FROM catraca_store.lock_counts WHERE namespace = $1";

/// Ranges that can be in the way of one: a page of them is more than the rules look at.
const MET_MAX: i64 = 1 << 20;

/// What to ask for, by what is known when.
#[derive(Default)]
pub(super) struct Need {
    /// Leases, before anything is known.
    pub leases: Vec<Statement>,
    /// Versions of names.
    pub versions: Option<Statement>,
    /// What became of attempts.
    pub counts: Option<Statement>,
}

impl Need {
    /// What an operation asks for at first.
    pub(super) fn of(namespace: &str, op: &LockOp, at: Option<Time>) -> Self {
        let ns = Mark::of_namespace(namespace);
        match op {
            LockOp::Acquire { asked, .. } => acquire(namespace, asked),
            LockOp::Hold(asked) => hold(namespace, asked),
            LockOp::Renew { proof, .. }
            | LockOp::Release(proof)
            | LockOp::Cancel(proof)
            | LockOp::Confirm { proof, .. }
            | LockOp::Show(proof) => Self::leases(vec![by_key(ns, proof.key)]),
            LockOp::Relocate(asked) => Self::leases(vec![by_key(ns, asked.proof.key)]),
            LockOp::Undo(key) => Self::leases(vec![by_key(ns, *key)]),
            LockOp::Force { fence, .. } => {
                let values = vec![mark(ns), bound(*fence, Type::INT8)];
                Self::leases(vec![Statement { sql: BY_FENCE, values }])
            }
            LockOp::Look(asked) => Self::leases(vec![look(namespace, asked, at)]),
            LockOp::Tally => {
                let counts = Statement { sql: COUNTS, values: vec![mark(ns)] };
                Self { counts: Some(counts), ..Self::default() }
            }
            LockOp::Miss { .. } | LockOp::List { .. } | LockOp::Clear { .. } | LockOp::Sweep => {
                Self::default()
            }
        }
    }

    fn leases(leases: Vec<Statement>) -> Self {
        Self { leases, ..Self::default() }
    }

    /// What it asks for once the instant and the last number are known.
    pub(super) fn later(namespace: &str, op: &LockOp, now: Time, fence: i64) -> Option<Statement> {
        let ns = Mark::of_namespace(namespace);
        let page = |after: i64, most: usize| {
            vec![mark(ns), number(after), number(now.micros()), number(count(most))]
        };
        match op {
            LockOp::List { after, most } => {
                let values = page(*after, most.saturating_add(1));
                Some(Statement { sql: LISTED, values })
            }
            LockOp::Clear { tenant, after, upto, most } => {
                let mut values = page(*after, *most);
                values.push(number(upto.unwrap_or(fence)));
                values.push(bound(tenant.as_deref().map(str::to_owned), Type::TEXT));
                Some(Statement { sql: CLEARED, values })
            }
            LockOp::Sweep => {
                let values = vec![mark(ns), number(now.micros()), number(count(SWEEP))];
                Some(Statement { sql: DUE, values })
            }
            _ => None,
        }
    }

    /// What it asks for once the lease that it is about is known.
    pub(super) fn about(namespace: &str, op: &LockOp, what: &What) -> Option<Statement> {
        let What::Slot(calendars, range) = what else { return None };
        match op {
            LockOp::Confirm { .. } => {
                let marks = calendars.iter().map(|name| name.mark(namespace));
                Some(by_range(marks.collect(), range.taken(), MET_MAX))
            }
            LockOp::Relocate(asked) => {
                let there = Range { start: asked.start, end: asked.end, ..*range };
                let tenant = calendars.first().and_then(|name| name.tenant.as_deref());
                let marks = match &asked.calendars {
                    Some(others) => others.iter().map(|o| calendar(namespace, tenant, o)).collect(),
                    None => calendars.iter().map(|name| name.mark(namespace)).collect(),
                };
                Some(by_range(marks, there.taken(), MET_MAX))
            }
            _ => None,
        }
    }
}

fn acquire(namespace: &str, asked: &Acquire) -> Need {
    let ns = Mark::of_namespace(namespace);
    let marks: Vec<Mark> = names(asked).iter().map(|name| name.mark(namespace)).collect();
    let by_name = Statement { sql: BY_NAME, values: vec![many(&marks)] };
    let mut leases = vec![by_key(ns, asked.lease.key), by_name];
    leases.extend(asked.print().map(|(name, _)| by_request(ns, name)));
    let monotonic = asked.policy == VersionPolicy::Monotonic;
    let versions = monotonic.then(|| Statement { sql: VERSIONS, values: vec![many(&marks)] });
    Need { leases, versions, counts: None }
}

fn hold(namespace: &str, asked: &Hold) -> Need {
    let ns = Mark::of_namespace(namespace);
    let tenant = asked.tenant.as_deref();
    let marks = asked.calendars.iter().map(|name| calendar(namespace, tenant, name)).collect();
    let mut leases =
        vec![by_key(ns, asked.lease.key), by_range(marks, asked.range.taken(), MET_MAX)];
    leases.extend(asked.print().map(|(name, _)| by_request(ns, name)));
    Need::leases(leases)
}

fn look(namespace: &str, asked: &Look, at: Option<Time>) -> Statement {
    let calendar = calendar(namespace, asked.tenant.as_deref(), &asked.calendar);
    // A range that ends before it begins is empty, and no error.
    let to = number(asked.to.max(asked.from).micros());
    let from = number(asked.from.micros());
    // One more than is told says that there is more; a few may not count.
    let (most, at) = (number(2 * count(BUSY_MAX)), bound(at.map(Time::micros), Type::INT8));
    Statement { sql: BUSY, values: vec![mark(calendar), from, to, most, at] }
}

/// The names that an acquire asks for.
pub(super) fn names(asked: &Acquire) -> Vec<LockName> {
    let name = |key: Box<str>| {
        let (tenant, kind) = (asked.tenant.clone(), asked.kind.clone());
        LockName { tenant, kind, key }
    };
    asked.keys.iter().cloned().map(name).collect()
}

/// What a calendar is found by.
fn calendar(namespace: &str, tenant: Option<&str>, name: &str) -> Mark {
    CalendarName { tenant: tenant.map(Box::from), calendar: name.into() }.mark(namespace)
}

fn by_key(ns: Mark, key: LeaseKey) -> Statement {
    let values = vec![mark(ns), bound(key.to_bytes().to_vec(), Type::BYTEA)];
    Statement { sql: BY_KEY, values }
}

fn by_request(ns: Mark, name: [u8; 16]) -> Statement {
    let values = vec![mark(ns), bound(name.to_vec(), Type::BYTEA)];
    Statement { sql: BY_REQUEST, values }
}

fn by_range(calendars: Vec<Mark>, (start, end): (Time, Time), most: i64) -> Statement {
    let (start, end) = (number(start.micros()), number(end.micros()));
    Statement { sql: BY_RANGE, values: vec![many(&calendars), start, end, number(most)] }
}

pub(super) fn mark(mark: Mark) -> Bound {
    bound(mark.0.to_vec(), Type::BYTEA)
}

pub(super) fn many(marks: &[Mark]) -> Bound {
    let marks: Vec<Vec<u8>> = marks.iter().map(|mark| mark.0.to_vec()).collect();
    bound(marks, Type::BYTEA_ARRAY)
}

pub(super) fn number(number: i64) -> Bound {
    bound(number, Type::INT8)
}

fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
