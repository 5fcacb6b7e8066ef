//! The queries that load what an operation needs of a namespace: all leases that can affect it, and
//! as few others as possible. A lease that is missing here would be ignored by the rules.

use catraca_core::lock::reply::LeaseTarget;
use catraca_core::lock::requests::{Acquire, AvailabilityQuery, Hold, TimeRange};
use catraca_core::lock::table::availability::BUSY_MAX;
use catraca_core::lock::{
    CalendarName, LeaseKey, LockName, LockOp, NameDigest, SWEEP, VersionPolicy,
};
use catraca_core::time::Time;
use tokio_postgres::types::Type;

use super::{BoundValue, LockStatement, bind};

/// A query for leases; `lease_row::read` relies on the order of the columns.
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
/// Ranges of leases that have not expired, by the clock or an explicit instant.
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

/// The most overlapping ranges that are loaded.
const OVERLAPS_MAX: i64 = 1 << 20;

/// The queries of the first round trip.
#[derive(Default)]
pub(super) struct LoadPlan {
    /// Leases.
    pub leases: Vec<LockStatement>,
    /// Versions of names.
    pub versions: Option<LockStatement>,
    /// The counts of attempts.
    pub counts: Option<LockStatement>,
}

impl LoadPlan {
    /// What an operation needs, as far as it is known before anything is loaded.
    pub(super) fn for_op(namespace: &str, op: &LockOp, at: Option<Time>) -> Self {
        let ns = NameDigest::of_namespace(namespace);
        match op {
            LockOp::Acquire { request, .. } => acquire(namespace, request),
            LockOp::Hold(request) => hold(namespace, request),
            LockOp::Renew { proof, .. }
            | LockOp::Release(proof)
            | LockOp::Cancel(proof)
            | LockOp::Confirm { proof, .. }
            | LockOp::Show(proof) => Self::leases(vec![by_key(ns, proof.key)]),
            LockOp::Relocate(request) => Self::leases(vec![by_key(ns, request.proof.key)]),
            LockOp::Undo(key) => Self::leases(vec![by_key(ns, *key)]),
            LockOp::Force { fence, .. } => {
                let values = vec![bind_digest(ns), bind(*fence, Type::INT8)];
                Self::leases(vec![LockStatement { sql: BY_FENCE, values }])
            }
            LockOp::Availability(query) => Self::leases(vec![look(namespace, query, at)]),
            LockOp::Counters => {
                let counts = LockStatement { sql: COUNTS, values: vec![bind_digest(ns)] };
                Self { counts: Some(counts), ..Self::default() }
            }
            LockOp::CountConflict { .. }
            | LockOp::List { .. }
            | LockOp::Clear { .. }
            | LockOp::Sweep => Self::default(),
        }
    }

    fn leases(leases: Vec<LockStatement>) -> Self {
        Self { leases, ..Self::default() }
    }

    /// What it needs once the clock and the last fence are known.
    pub(super) fn after_clock(
        namespace: &str,
        op: &LockOp,
        now: Time,
        fence: i64,
    ) -> Option<LockStatement> {
        let ns = NameDigest::of_namespace(namespace);
        let page = |after: i64, most: usize| {
            vec![
                bind_digest(ns),
                bind_number(after),
                bind_number(now.micros()),
                bind_number(count(most)),
            ]
        };
        match op {
            // One more than a page says whether there is a next page.
            LockOp::List { after, most } => {
                let values = page(*after, most.saturating_add(1));
                Some(LockStatement { sql: LISTED, values })
            }
            LockOp::Clear { tenant, after, upto, most } => {
                let mut values = page(*after, *most);
                values.push(bind_number(upto.unwrap_or(fence)));
                values.push(bind(tenant.as_deref().map(str::to_owned), Type::TEXT));
                Some(LockStatement { sql: CLEARED, values })
            }
            LockOp::Sweep => {
                let values =
                    vec![bind_digest(ns), bind_number(now.micros()), bind_number(count(SWEEP))];
                Some(LockStatement { sql: DUE, values })
            }
            _ => None,
        }
    }

    /// What it needs once the lease of its proof is known: for a slot that is confirmed or moved,
    /// the leases that overlap it.
    pub(super) fn for_lease(
        namespace: &str,
        op: &LockOp,
        target: &LeaseTarget,
    ) -> Option<LockStatement> {
        let LeaseTarget::Slot(calendars, range) = target else { return None };
        match op {
            LockOp::Confirm { .. } => {
                let digests: Vec<_> = calendars.iter().map(|name| name.digest(namespace)).collect();
                Some(by_range(&digests, range))
            }
            LockOp::Relocate(request) => {
                let there = TimeRange { start: request.start, end: request.end, ..*range };
                let tenant = calendars.first().and_then(|name| name.tenant.as_deref());
                let digests: Vec<_> = match &request.calendars {
                    Some(names) => {
                        names.iter().map(|name| calendar_digest(namespace, tenant, name)).collect()
                    }
                    None => calendars.iter().map(|name| name.digest(namespace)).collect(),
                };
                Some(by_range(&digests, &there))
            }
            _ => None,
        }
    }
}

/// The lease of the same proof, the holders of the names, and the lease of the same request id.
fn acquire(namespace: &str, request: &Acquire) -> LoadPlan {
    let ns = NameDigest::of_namespace(namespace);
    let names = requested_names(request);
    let digests: Vec<_> = names.iter().map(|name| name.digest(namespace)).collect();
    let by_name = LockStatement { sql: BY_NAME, values: vec![bind_digests(&digests)] };
    let mut leases = vec![by_key(ns, request.lease.key), by_name];
    leases.extend(request.request_digest().map(|(id_digest, _)| by_request(ns, id_digest)));
    let is_monotonic = request.policy == VersionPolicy::Monotonic;
    let versions = || LockStatement { sql: VERSIONS, values: vec![bind_digests(&digests)] };
    LoadPlan { leases, versions: is_monotonic.then(versions), counts: None }
}

/// The lease of the same proof, overlapping slots, and the lease of the same request id.
fn hold(namespace: &str, request: &Hold) -> LoadPlan {
    let ns = NameDigest::of_namespace(namespace);
    let tenant = request.tenant.as_deref();
    let calendars = request.calendars.iter();
    let digests: Vec<_> = calendars.map(|name| calendar_digest(namespace, tenant, name)).collect();
    let mut leases = vec![by_key(ns, request.lease.key), by_range(&digests, &request.range)];
    leases.extend(request.request_digest().map(|(id_digest, _)| by_request(ns, id_digest)));
    LoadPlan::leases(leases)
}

fn look(namespace: &str, query: &AvailabilityQuery, at: Option<Time>) -> LockStatement {
    let calendar = calendar_digest(namespace, query.tenant.as_deref(), &query.calendar);
    // PostgreSQL refuses a range that ends before it begins; it means an empty one here.
    let to = bind_number(query.to.max(query.from).micros());
    let from = bind_number(query.from.micros());
    // More than one page, so that there is a next one to report even if some rows do not count.
    let most = bind_number(2 * count(BUSY_MAX));
    let at = bind(at.map(Time::micros), Type::INT8);
    LockStatement { sql: BUSY, values: vec![bind_digest(calendar), from, to, most, at] }
}

/// The names that a request wants to acquire.
pub(super) fn requested_names(request: &Acquire) -> Vec<LockName> {
    let name = |key: Box<str>| LockName {
        tenant: request.tenant.clone(),
        kind: request.kind.clone(),
        key,
    };
    request.keys.iter().cloned().map(name).collect()
}

/// The digest of a calendar's name.
fn calendar_digest(namespace: &str, tenant: Option<&str>, name: &str) -> NameDigest {
    CalendarName { tenant: tenant.map(Box::from), calendar: name.into() }.digest(namespace)
}

fn by_key(ns: NameDigest, key: LeaseKey) -> LockStatement {
    let values = vec![bind_digest(ns), bind(key.to_bytes().to_vec(), Type::BYTEA)];
    LockStatement { sql: BY_KEY, values }
}

fn by_request(ns: NameDigest, id_digest: [u8; 16]) -> LockStatement {
    let values = vec![bind_digest(ns), bind(id_digest.to_vec(), Type::BYTEA)];
    LockStatement { sql: BY_REQUEST, values }
}

/// The leases that overlap a range of time in some calendars.
fn by_range(calendars: &[NameDigest], range: &TimeRange) -> LockStatement {
    let (start, end) = range.occupied_range();
    let values = vec![
        bind_digests(calendars),
        bind_number(start.micros()),
        bind_number(end.micros()),
        bind_number(OVERLAPS_MAX),
    ];
    LockStatement { sql: BY_RANGE, values }
}

pub(super) fn bind_digest(digest: NameDigest) -> BoundValue {
    bind(digest.0.to_vec(), Type::BYTEA)
}

pub(super) fn bind_digests(digests: &[NameDigest]) -> BoundValue {
    let digests: Vec<Vec<u8>> = digests.iter().map(|digest| digest.0.to_vec()).collect();
    bind(digests, Type::BYTEA_ARRAY)
}

pub(super) fn bind_number(number: i64) -> BoundValue {
    bind(number, Type::INT8)
}

fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
