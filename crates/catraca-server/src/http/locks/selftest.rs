//! The self-test: tries limits, locks and bookings, in a namespace that is nobody's.
//!
//! Admins only, and every act is audited. Must not touch what anybody else counts or holds.

use std::sync::{Arc, OnceLock};

use catraca::core::lock::op::{Acquire, Hold, Proof, Range, Wanted};
use catraca::core::lock::reply::{Acquired, Ended};
use catraca::core::lock::{Durability, LeaseKey, VersionPolicy};
use catraca::{Catalog, Check, Engine, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::problem::Problem;
use super::shown::{Listed, LockCounts};
use super::wire::Instant;
use super::{Call, Told, told};
use crate::locks::Keeper;

/// Nobody's key is bound to it.
const NAMESPACE: &str = " selftest";
/// Five pass in a minute, and the sixth does not.
const LIMIT: &str = "[policy.selftest]\nby = ['ip']\nwindow = '5 per 1m'\n";
const BOOKINGS: usize = 16;

/// What to try.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "action": "test_concurrent_appointments",
    "data": { "startAt": "2026-01-31T12:00:00Z", "duration": 30 },
}))]
pub struct SelfTest {
    action: Action,
    /// What to try it with.
    #[serde(default)]
    data: Data,
}

/// What can be tried.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SelfTestAction")]
pub enum Action {
    /// Six checks against a limit of five.
    TestRateLimit,
    /// Take a lock, meet a conflict, give it back.
    TestLock,
    /// Sixteen bookings of one slot at once.
    TestConcurrentAppointments,
    /// Forget what the self-test counted.
    ClearRateLimits,
    /// End what the self-test holds.
    ClearLocks,
}

impl Action {
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

/// What to try it with.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "SelfTestData")]
pub struct Data {
    /// The kind of the lock.
    resource_type: Option<String>,
    /// The name of the lock.
    resource_id: Option<String>,
    /// When the booking begins.
    start_at: Option<Instant>,
    /// How long it is, in minutes.
    #[schemars(range(min = 1, max = 1_440))]
    duration: Option<i64>,
}

impl Data {
    /// When the booking is to be.
    fn range(&self, now: Time) -> Result<Range, Problem> {
        let start = self.start_at.as_ref().map_or(Ok(now), |start| start.time("startAt"))?;
        let minutes = self.duration.unwrap_or(30);
        if !(1..=1_440).contains(&minutes) {
            return Err(Problem::bad("bad-lock", "`duration` must be 1 to 1440 minutes"));
        }
        Ok(Range::of(start, start.after(Span::from_secs(minutes * 60))))
    }
}

/// What came of it.
#[derive(Serialize, JsonSchema)]
pub struct SelfTested {
    #[schemars(example = &"test_lock")]
    action: &'static str,
    /// Whether all went as it must.
    ok: bool,
    /// What was seen, by name.
    #[schemars(with = "std::collections::BTreeMap<String, i64>")]
    seen: Value,
    /// Whether the audit is on disk.
    durable: bool,
}

/// What the self-test knows of the server.
#[derive(Serialize, JsonSchema)]
pub struct SelfTestReport {
    /// The catalog in force.
    revision: String,
    policies: usize,
    /// How long each kind of lock lasts, in milliseconds.
    #[schemars(with = "std::collections::BTreeMap<String, i64>")]
    ttl_ms: Value,
    /// What became of the attempts of your namespace, or of the tenant that your key fixes.
    locks: LockCounts,
    /// The first leases of your namespace, or of the tenant that your key fixes.
    active: Vec<Listed>,
}

/// `GET /v1/selftest`.
pub async fn report(call: &Call) -> Told {
    let [] = call.asked([])?;
    let (locks, catalog) = (call.locks(), call.front.engine.catalog());
    let kinds = catalog.locks.kinds.iter();
    let kinds = kinds.map(|(name, kind)| (name.to_string(), kind.ttl.ceil_millis().into()));
    let tenant = call.by.tenant(None)?;
    let tenant = tenant.as_deref();
    let filter = catraca::locks::Filter { tenant, ..Default::default() };
    let page = locks.list(call.namespace(), &filter, (0, 50)).await?;
    told(&SelfTestReport {
        revision: catalog.revision.to_string(),
        policies: catalog.policies.len(),
        ttl_ms: Value::Object(kinds.collect()),
        locks: (&locks.stats_of(call.namespace(), tenant).await?).into(),
        active: page.leases.iter().map(Listed::from).collect(),
    })
}

/// `POST /v1/selftest`.
pub async fn run(call: &Call) -> Told {
    let wire: SelfTest = call.wire()?;
    let locks = call.locks();
    // Also where it is not needed: what is wrong is never taken for right.
    let range = wire.data.range(call.front.engine.now())?;
    let (ok, seen) = match wire.action {
        Action::TestRateLimit => limit()?,
        Action::TestLock => lock(locks, &wire.data).await?,
        Action::TestConcurrentAppointments => bookings(locks, range).await?,
        Action::ClearRateLimits => forget()?,
        Action::ClearLocks => {
            let cleared = locks.clear(NAMESPACE, None).await?;
            (true, json!({ "cleared": cleared }))
        }
    };
    let action = wire.action.as_str();
    let durable = call.audited("selftest", action.to_owned(), None).await;
    told(&SelfTested { action, ok, seen, durable })
}

/// An engine of its own, so that nobody else's counters are touched.
fn engine() -> Result<&'static Engine, Problem> {
    static ENGINE: OnceLock<Option<Engine>> = OnceLock::new();
    let engine = ENGINE.get_or_init(|| Catalog::parse(LIMIT).ok().map(Engine::new));
    engine.as_ref().ok_or_else(|| Problem::internal(&"the self-test's catalog is wrong"))
}

const SUBJECT: [(&str, &str); 1] = [("ip", "192.0.2.1")];

fn limit() -> Result<(bool, Value), Problem> {
    forget()?;
    let check = Check::new("selftest", SUBJECT);
    let (mut allowed, mut limited) = (0, 0);
    for _ in 0..6 {
        let passes = engine()?.check(&check)?.allowed;
        *(if passes { &mut allowed } else { &mut limited }) += 1;
    }
    let seen = json!({ "total": 6, "success": allowed, "limited": limited });
    Ok((allowed == 5 && limited == 1, seen))
}

fn forget() -> Result<(bool, Value), Problem> {
    engine()?.reset("default", "selftest", &catraca::Subject::from(SUBJECT))?;
    Ok((true, json!({ "cleared": 1 })))
}

async fn lock(locks: &Keeper, data: &Data) -> Result<(bool, Value), Problem> {
    let asked = |id: catraca::core::lock::LeaseId| {
        let kind = data.resource_type.as_deref().unwrap_or("resource").into();
        let key = data.resource_id.as_deref().unwrap_or("selftest").into();
        let lease = Wanted::new(id.key(), Span::from_secs(5), Span::from_secs(5));
        let policy = VersionPolicy::Opaque;
        Acquire { tenant: None, kind, keys: vec![key], lease, policy }.checked()
    };
    let first = locks.lease_id(NAMESPACE, None, None)?;
    let second = locks.lease_id(NAMESPACE, None, None)?;
    let memory = Durability::Memory;
    let (mine, _) = locks.acquire(NAMESPACE, &asked(first)?, Span::ZERO, memory).await?;
    let (theirs, _) = locks.acquire(NAMESPACE, &asked(second)?, Span::ZERO, memory).await?;
    let ended = locks.release(NAMESPACE, &Proof { key: first.key(), tenant: None }).await?;
    let granted = matches!(mine.acquired, Acquired::Granted(_));
    let conflict = matches!(theirs.acquired, Acquired::Conflict(_));
    let released = ended == Ended::Released;
    let seen = json!({
        "granted": u8::from(granted),
        "conflicts": u8::from(conflict),
        "released": u8::from(released),
    });
    Ok((granted && conflict && released, seen))
}

async fn bookings(locks: &Arc<Keeper>, range: Range) -> Result<(bool, Value), Problem> {
    let (mut won, mut conflicts) = (0, 0);
    let all: Vec<_> = (0..BOOKINGS).map(|_| tokio::spawn(book(Arc::clone(locks), range))).collect();
    let mut winners = Vec::new();
    for one in all {
        match one.await.map_err(|error| Problem::internal(&error))?? {
            Some(key) => {
                won += 1;
                winners.push(key);
            }
            None => conflicts += 1,
        }
    }
    for key in winners {
        locks.cancel(NAMESPACE, &Proof { key, tenant: None }).await?;
    }
    let seen = json!({ "attempts": BOOKINGS, "winners": won, "conflicts": conflicts });
    Ok((won == 1, seen))
}

/// One booking among others; its lease if it won.
async fn book(locks: Arc<Keeper>, range: Range) -> Result<Option<LeaseKey>, Problem> {
    let key = locks.lease_id(NAMESPACE, None, None)?.key();
    let lease = Wanted::new(key, Span::from_secs(10), Span::from_secs(10));
    let (kind, calendars) = ("appointment".into(), vec!["selftest".into()]);
    let hold = Hold { tenant: None, kind, calendars, range, lease };
    let hold = hold.checked(Span::from_secs(86_400))?;
    let (held, _) = locks.hold(NAMESPACE, &hold, Durability::Memory).await?;
    Ok(matches!(held.acquired, Acquired::Granted(_)).then_some(key))
}
