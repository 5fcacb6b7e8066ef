//! Callers of decisions and of locks over a cluster, in many namespaces, and what each observed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use catraca::locks::LockStore;
use catraca::redis::{RedisLocks, RedisOptions};
use catraca::store::When;
use catraca::{App, Check, Span};
use catraca_core::lock::requests::{Acquire, LeaseRequest, Proof};
use catraca_core::lock::{LeaseId, LeaseKey, LockOp, LockOutcome, VersionPolicy, reply};
use catraca_testkit::redis::RedisCluster;
use catraca_testkit::resp::RespValue;
use tokio::runtime::Runtime;

use super::helpers::pause;

/// Long enough on a busy machine: a test of this load measures who is affected, and not how long a
/// call takes.
pub const LONG_DEADLINE: Duration = Duration::from_secs(5);
/// The grace of the leases: longer than a test.
const GRACE: Span = Span::from_secs(600);

/// What the caller of one namespace observed.
#[derive(Debug, Default)]
pub struct Observed {
    pub answers: AtomicU64,
    /// Decisions without the store.
    pub degraded: AtomicU64,
    /// Denials of a policy that fails closed.
    pub denied: AtomicU64,
    pub granted: AtomicU64,
    /// Locks that were not granted.
    pub refused: AtomicU64,
}

/// The caller of a namespace.
pub struct Caller {
    pub namespace: String,
    pub observed: Arc<Observed>,
    /// The group of its keys, which decides their slot.
    pub group: String,
}

/// Callers that run until this is dropped.
pub struct ClusterLoad {
    pub callers: Vec<Caller>,
    stop: Arc<AtomicBool>,
}

impl Observed {
    pub fn count(&self, counter: impl Fn(&Self) -> &AtomicU64) -> u64 {
        counter(self).load(Ordering::Relaxed)
    }
}

impl ClusterLoad {
    /// Starts a caller per namespace: half of them check, half of them lock.
    pub fn start(cluster: &RedisCluster, app: &App, runtime: &Runtime, callers: usize) -> Self {
        let options = RedisOptions { deadline: LONG_DEADLINE, ..RedisOptions::default() };
        let locks = runtime.block_on(RedisLocks::connect(&cluster.url(), options)).unwrap();
        let locks = Arc::new(locks);
        let stop = Arc::new(AtomicBool::new(false));
        let mut load = Self { callers: Vec::new(), stop };
        for number in 0..callers {
            let observed = Arc::new(Observed::default());
            let namespace = format!("namespace {number}");
            let before = used_groups(cluster);
            match number % 2 {
                0 => load.start_checks(runtime, app, &namespace, &observed),
                _ => load.start_locks(runtime, &locks, &namespace, &observed),
            }
            let group = used_groups(cluster).difference(&before).next().cloned();
            let group = group.unwrap_or_else(|| panic!("{namespace} shares the group of another"));
            load.callers.push(Caller { namespace, observed, group });
        }
        load
    }

    fn start_checks(&self, runtime: &Runtime, app: &App, namespace: &str, seen: &Arc<Observed>) {
        runtime.block_on(check_once(app, namespace, seen));
        let app = app.clone();
        self.spawn(runtime, namespace.to_owned(), seen.clone(), move |name, seen| {
            let app = app.clone();
            async move { check_once(&app, &name, &seen).await }
        });
    }

    fn start_locks(
        &self,
        runtime: &Runtime,
        locks: &Arc<RedisLocks>,
        namespace: &str,
        seen: &Arc<Observed>,
    ) {
        runtime.block_on(lock_once(locks, namespace, seen, 0));
        let locks = locks.clone();
        let lease = AtomicU64::new(1);
        self.spawn(runtime, namespace.to_owned(), seen.clone(), move |name, seen| {
            let locks = locks.clone();
            let lease = lease.fetch_add(1, Ordering::Relaxed);
            async move { lock_once(&locks, &name, &seen, lease).await }
        });
    }

    fn spawn<F: Future<Output = ()> + Send>(
        &self,
        runtime: &Runtime,
        namespace: String,
        observed: Arc<Observed>,
        call: impl Fn(String, Arc<Observed>) -> F + Send + 'static,
    ) {
        let stop = self.stop.clone();
        drop(runtime.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                call(namespace.clone(), observed.clone()).await;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }));
    }

    /// Waits until every caller in `which` has this many more answers.
    pub fn wait_for_answers(&self, more: u64, which: impl Fn(&Caller) -> bool) {
        let callers: Vec<&Caller> = self.callers.iter().filter(|caller| which(caller)).collect();
        let answers = |caller: &Caller| caller.observed.count(|seen| &seen.answers);
        let before: Vec<u64> = callers.iter().map(|caller| answers(caller)).collect();
        for (caller, before) in callers.into_iter().zip(before) {
            while answers(caller) < before + more {
                pause(Duration::from_millis(1));
            }
        }
    }

    /// The sum of a counter over the callers in `which`.
    pub fn sum(
        &self,
        counter: impl Fn(&Observed) -> &AtomicU64,
        which: impl Fn(&Caller) -> bool,
    ) -> u64 {
        let callers = self.callers.iter().filter(|caller| which(caller));
        callers.map(|caller| caller.observed.count(&counter)).sum()
    }
}

impl Drop for ClusterLoad {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// One check of a policy that fails closed.
async fn check_once(app: &App, namespace: &str, observed: &Observed) {
    let mut check = Check::new("closed", [("ip", "192.0.2.1")]);
    check.namespace = namespace;
    let decision = app.check(&check).await.unwrap();
    observed.degraded.fetch_add(u64::from(decision.degraded), Ordering::Relaxed);
    observed.denied.fetch_add(u64::from(!decision.allowed), Ordering::Relaxed);
    observed.answers.fetch_add(1, Ordering::Relaxed);
}

/// Acquires and releases a lock of a kind with a grace after a failover.
async fn lock_once(locks: &RedisLocks, namespace: &str, observed: &Observed, lease: u64) {
    let key = lease_key(lease);
    let mut request = LeaseRequest::new(key, Span::from_secs(60), Span::from_secs(3_600));
    request.grace = GRACE;
    let request = Acquire {
        tenant: None,
        kind: "payment".into(),
        keys: vec![lease.to_string().into()],
        lease: request,
        policy: VersionPolicy::Opaque,
    };
    let op = LockOp::Acquire { request, counts_conflict: true };
    let answer = locks.ask(namespace, &op, When::Store).await;
    let is_granted = matches!(
        answer.as_ref().map(|reply| &reply.outcome),
        Ok(LockOutcome::Acquired(reply::AcquireReply::Granted(_)))
    );
    if is_granted {
        observed.granted.fetch_add(1, Ordering::Relaxed);
        let release = LockOp::Release(Proof { key, tenant: None });
        let _ = locks.ask(namespace, &release, When::Store).await;
    } else if observed.refused.fetch_add(1, Ordering::Relaxed) == 0 {
        println!("the first refusal in {namespace}: {answer:?}");
    }
    observed.answers.fetch_add(1, Ordering::Relaxed);
}

fn lease_key(number: u64) -> LeaseKey {
    let mut bytes = [7; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    LeaseId::from_bytes(bytes).key()
}

/// The groups of all keys on the primaries.
pub fn used_groups(cluster: &RedisCluster) -> BTreeSet<String> {
    let primaries = (0..cluster.servers.len()).filter(|server| cluster.is_primary(*server));
    primaries.flat_map(|server| groups_on(cluster, server)).collect()
}

/// The groups of the keys on one server.
pub fn groups_on(cluster: &RedisCluster, server: usize) -> BTreeSet<String> {
    let RespValue::Array(keys) = cluster.servers[server].command(&["KEYS", "*"]) else {
        panic!("not a list of keys")
    };
    let group = |key: &RespValue| {
        let RespValue::Bytes(key) = key else { panic!("not a key") };
        let key = String::from_utf8_lossy(key).into_owned();
        let (_, rest) = key.split_once('{').expect("a key of this store has a hash tag");
        rest[..4].to_owned()
    };
    keys.iter().map(group).collect()
}

/// The slot of the keys of a group.
pub fn slot_of(cluster: &RedisCluster, group: &str) -> u16 {
    let tag = format!("{{{group}}}");
    match cluster.servers[0].command(&["CLUSTER", "KEYSLOT", &tag]) {
        RespValue::Int(slot) => u16::try_from(slot).unwrap(),
        other => panic!("not a slot: {other:?}"),
    }
}

/// Moves the slots of all keys on one server to another.
pub fn move_all(cluster: &RedisCluster, from: usize, to: usize) -> usize {
    let slots: BTreeSet<u16> =
        groups_on(cluster, from).iter().map(|group| slot_of(cluster, group)).collect();
    for slot in &slots {
        cluster.move_slot(*slot, from, to);
    }
    slots.len()
}
