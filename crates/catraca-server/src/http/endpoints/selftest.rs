//! `/v1/selftest`: tries limits, locks and bookings without touching those of clients.
//!
//! Limits are tried on an engine of their own, locks in a namespace that no key can name. Every
//! run is audited.

use std::sync::{Arc, OnceLock};

use catraca::core::lock::reply::{AcquireReply, ReleaseReply};
use catraca::core::lock::requests::{Acquire, Hold, LeaseRequest, Proof, TimeRange};
use catraca::core::lock::{LeaseKey, VersionPolicy};
use catraca::{AppError, Catalog, Check, Engine, Locks, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::http::bodies::lock_requests::InstantBody;
use crate::http::bodies::lock_responses::{ListedLease, LockCounts};
use crate::http::bodies::problem::{Problem, respond_json};
use crate::http::endpoint::ApiResult;
use crate::http::endpoints::admin::stats::PolicyTotals;
use crate::http::request::ApiRequest;

/// No key can be bound to it: the name of a namespace has no spaces.
const NAMESPACE: &str = " selftest";
/// Allows five checks a minute, so the sixth is denied.
const LIMIT: &str = "[policy.selftest]\nby = ['ip']\nwindow = '5 per 1m'\n";
const BOOKINGS: usize = 16;
/// What the report counts, to the end of this minute.
const DAY: Span = Span::from_secs(86_400);
const MINUTE: Span = Span::from_secs(60);

/// A test to run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "action": "test_concurrent_appointments",
    "data": { "startAt": "2026-01-31T12:00:00Z", "duration": 30 },
}))]
pub struct SelfTest {
    action: SelfTestAction,
    /// The input of a test; each test uses a part of it.
    #[serde(default)]
    data: SelfTestData,
}

/// The tests.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SelfTestAction {
    /// Sends six checks against a limit of five.
    TestRateLimit,
    /// Acquires a lock, provokes a conflict, releases it.
    TestLock,
    /// Books one slot sixteen times at once.
    TestConcurrentAppointments,
    /// Resets the counters of the self-test.
    ClearRateLimits,
    /// Ends all leases of the self-test.
    ClearLocks,
}

impl SelfTestAction {
    const fn as_str(self) -> &'static str {
        match self {
            Self::TestRateLimit => "test_rate_limit",
            Self::TestLock => "test_lock",
            Self::TestConcurrentAppointments => "test_concurrent_appointments",
            Self::ClearRateLimits => "clear_rate_limits",
            Self::ClearLocks => "clear_locks",
        }
    }
}

/// The input of a test; each test uses a part of it.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "an object")]
pub struct SelfTestData {
    /// The kind of the lock.
    resource_type: Option<String>,
    /// The name of the lock.
    resource_id: Option<String>,
    /// When the booking begins. Default: now.
    start_at: Option<InstantBody>,
    /// The length of the booking, in minutes. Default: 30.
    #[schemars(range(min = 1, max = 1_440))]
    duration: Option<i64>,
}

impl SelfTestData {
    /// The range of time to book.
    fn range(&self, now: Time) -> Result<TimeRange, Problem> {
        let start = self.start_at.as_ref().map_or(Ok(now), |start| start.time("startAt"))?;
        let minutes = self.duration.unwrap_or(30);
        if !(1..=1_440).contains(&minutes) {
            return Err(Problem::bad("bad-lock", "`duration` must be 1 to 1440 minutes"));
        }
        Ok(TimeRange::of(start, start.after(Span::from_secs(minutes * 60))))
    }
}

/// The result of a test.
#[derive(Serialize, JsonSchema)]
pub struct SelfTestResult {
    #[schemars(example = &"test_lock")]
    action: &'static str,
    /// Whether the test passed.
    ok: bool,
    /// What was counted, by name.
    #[schemars(with = "std::collections::BTreeMap<String, i64>")]
    seen: Value,
    /// Whether the audit is on disk.
    durable: bool,
}

/// Counts of limits and locks, leases, and settings of the server.
#[derive(Serialize, JsonSchema)]
pub struct SelfTestReport {
    /// The revision of the catalog in use.
    revision: String,
    policies: usize,
    /// The verdicts of each policy in the last day; null if there are no records to count them in.
    limits: Option<Vec<PolicyTotals>>,
    /// The default lifetime of each kind of lock, in milliseconds.
    #[schemars(with = "std::collections::BTreeMap<String, i64>")]
    ttl_ms: Value,
    /// Lock attempts in your namespace, or of the tenant that your key fixes.
    locks: LockCounts,
    /// The oldest leases in your namespace, or of the tenant that your key fixes.
    active: Vec<ListedLease>,
}

/// `GET /v1/selftest`.
pub async fn report(request: &ApiRequest) -> ApiResult {
    let [] = request.query_params([])?;
    let locks = request.locks();
    let catalog = request.app().catalog();
    let kinds = catalog.locks.kinds.iter();
    let kinds = kinds.map(|(name, kind)| (name.to_string(), kind.ttl.ceil_millis().into()));
    let tenant = request.caller.allowed_tenant(None)?;
    let tenant = tenant.as_deref();
    let filter = catraca::locks::LeaseFilter { tenant, ..Default::default() };
    let namespace = request.namespace();
    let page = locks.list(namespace, &filter, 0, 50).await?;
    let stats = locks.stats_of(namespace, tenant).await?;
    let now = request.app().now();
    let own = request.caller.bound_namespace();
    let limits = match request.app().totals(own, now.before(DAY), now.after(MINUTE)).await {
        Ok(totals) => Some(PolicyTotals::of(&totals)),
        Err(AppError::NoRecords) => None,
        Err(error) => return Err(error.into()),
    };
    respond_json(&SelfTestReport {
        revision: catalog.revision.to_string(),
        policies: catalog.policies.len(),
        limits,
        ttl_ms: Value::Object(kinds.collect()),
        locks: LockCounts::new(&[(namespace.to_owned(), stats)]),
        active: page.leases.iter().map(|lease| ListedLease::new(namespace, lease)).collect(),
    })
}

/// `POST /v1/selftest`.
pub async fn run(request: &ApiRequest) -> ApiResult {
    let body: SelfTest = request.json_body()?;
    let locks = request.locks();
    // Validated for every action, so that invalid input is never accepted.
    let range = body.data.range(request.app().now())?;
    let (ok, seen) = match body.action {
        SelfTestAction::TestRateLimit => test_rate_limit()?,
        SelfTestAction::TestLock => test_lock(locks, &body.data).await?,
        SelfTestAction::TestConcurrentAppointments => {
            test_concurrent_bookings(locks, range).await?
        }
        SelfTestAction::ClearRateLimits => clear_rate_limits()?,
        SelfTestAction::ClearLocks => {
            let cleared = locks.clear(NAMESPACE, None).await?;
            (true, json!({ "cleared": cleared }))
        }
    };
    let action = body.action.as_str();
    let durable = request.write_audit("selftest", action.to_owned(), None).await?;
    respond_json(&SelfTestResult { action, ok, seen, durable })
}

/// An engine of its own, so that no counters of clients are touched.
fn engine() -> Result<&'static Engine, Problem> {
    static ENGINE: OnceLock<Option<Engine>> = OnceLock::new();
    let engine = ENGINE.get_or_init(|| Catalog::parse(LIMIT).ok().map(Engine::new));
    engine.as_ref().ok_or_else(|| Problem::internal(&"the catalog of the self-test is invalid"))
}

/// The subject of the checks; its address is reserved for documentation.
const SUBJECT: [(&str, &str); 1] = [("ip", "192.0.2.1")];

/// Whether exactly five of six checks pass, and the counts.
fn test_rate_limit() -> Result<(bool, Value), Problem> {
    clear_rate_limits()?;
    let check = Check::new("selftest", SUBJECT);
    let mut allowed = 0;
    let mut limited = 0;
    for _ in 0..6 {
        match engine()?.check(&check)?.allowed {
            true => allowed += 1,
            false => limited += 1,
        }
    }
    let seen = json!({ "total": 6, "success": allowed, "limited": limited });
    Ok((allowed == 5 && limited == 1, seen))
}

fn clear_rate_limits() -> Result<(bool, Value), Problem> {
    engine()?.reset("default", "selftest", &catraca::Subject::from(SUBJECT))?;
    Ok((true, json!({ "cleared": 1 })))
}

/// Whether a lock is granted, then refused to another, then released; and the counts.
async fn test_lock(locks: &Locks, data: &SelfTestData) -> Result<(bool, Value), Problem> {
    let acquire = |id: catraca::core::lock::LeaseId| {
        let kind = data.resource_type.as_deref().unwrap_or("resource").into();
        let key = data.resource_id.as_deref().unwrap_or("selftest").into();
        let lease = LeaseRequest::new(id.key(), Span::from_secs(5), Span::from_secs(5));
        let policy = VersionPolicy::Opaque;
        Acquire { tenant: None, kind, keys: vec![key], lease, policy }.validate()
    };
    let first = locks.lease_id(NAMESPACE, None, None)?;
    let second = locks.lease_id(NAMESPACE, None, None)?;
    let mine = locks.acquire(NAMESPACE, &acquire(first)?, Span::ZERO).await?;
    let theirs = locks.acquire(NAMESPACE, &acquire(second)?, Span::ZERO).await?;
    let ended = locks.release(NAMESPACE, &Proof { key: first.key(), tenant: None }).await?;
    let granted = matches!(mine.acquired, AcquireReply::Granted(_));
    let conflict = matches!(theirs.acquired, AcquireReply::Conflict(_));
    let released = ended == ReleaseReply::Released;
    let seen = json!({
        "granted": u8::from(granted),
        "conflicts": u8::from(conflict),
        "released": u8::from(released),
    });
    Ok((granted && conflict && released, seen))
}

/// Whether exactly one of the bookings wins, and the counts.
async fn test_concurrent_bookings(
    locks: &Arc<Locks>,
    range: TimeRange,
) -> Result<(bool, Value), Problem> {
    let mut won = 0;
    let mut conflicts = 0;
    let book_one = |_| tokio::spawn(book(Arc::clone(locks), range));
    let tasks: Vec<_> = (0..BOOKINGS).map(book_one).collect();
    let mut winners = Vec::new();
    for task in tasks {
        match task.await.map_err(|error| Problem::internal(&error))?? {
            Some(key) => {
                won += 1;
                winners.push(key);
            }
            None => conflicts += 1,
        }
    }
    // Leaves the calendar free for the next run.
    for key in winners {
        locks.cancel(NAMESPACE, &Proof { key, tenant: None }).await?;
    }
    let seen = json!({ "attempts": BOOKINGS, "winners": won, "conflicts": conflicts });
    Ok((won == 1, seen))
}

/// Makes one booking; returns its lease, or `None` on a conflict.
async fn book(locks: Arc<Locks>, range: TimeRange) -> Result<Option<LeaseKey>, Problem> {
    let key = locks.lease_id(NAMESPACE, None, None)?.key();
    let lease = LeaseRequest::new(key, Span::from_secs(10), Span::from_secs(10));
    let hold = Hold {
        tenant: None,
        kind: "appointment".into(),
        calendars: vec!["selftest".into()],
        range,
        lease,
    };
    let hold = hold.validate(Span::from_secs(86_400))?;
    let attempt = locks.hold(NAMESPACE, &hold).await?;
    Ok(matches!(attempt.acquired, AcquireReply::Granted(_)).then_some(key))
}
