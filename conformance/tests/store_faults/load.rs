//! The load: 800 checks a second on 40 keys over all nodes, blocked callers, calls that need no
//! store, and acts during the fault. Bounded in count: each worker sends at most one request per
//! interval.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::act_load::{self, ACTS, Actor, Prepared};
use super::acts::{Act, ActHistory};
use super::history::{CallerKind, ObservedCheck, used_up};
use super::http_client::HttpClient;
use super::lock_history::LockHistory;
use super::lock_load;
use super::node::{LIMITS, NODES};

/// Keys with a limit, of each round; half of them have each limit.
pub const KEYS: usize = 40;
const CHECKS_PER_SECOND: u32 = 800;
const WORKERS: usize = 24;
/// Blocked callers that every node has seen before the fault.
pub const BLOCKED: usize = 10;
/// Blocked callers that only the first node has seen.
pub const UNSEEN: usize = 10;
const BLOCKED_INTERVAL: Duration = Duration::from_millis(40);
const CONTROL_INTERVAL: Duration = Duration::from_millis(50);

/// The policy and the limit of a key.
pub fn limit_of(key: usize) -> (&'static str, usize) {
    LIMITS[key % LIMITS.len()]
}

/// The keys of a round whose limit is used up before the fault, with that limit.
pub fn early_keys(round: usize) -> impl Iterator<Item = (usize, usize)> {
    let keys = (0..KEYS).map(move |key| round * KEYS + key);
    keys.map(|key| (key, limit_of(key)))
        .filter_map(|(key, (policy, limit))| (policy == LIMITS[0].0).then_some((key, limit)))
}

/// The body of a check.
pub fn check_body(policy: &str, customer: &str) -> String {
    format!(r#"{{"gate":"{policy}","subject":{{"customer":"{customer}"}}}}"#)
}

/// What a worker of one node gets: the shared state, the address and the number of the node.
pub type NodeWorker = (Arc<LoadState>, String, usize);

/// What the workers share.
pub struct LoadState {
    start: Instant,
    stop: AtomicBool,
    /// Whether the fault has begun: from then on, the unseen blocked callers call too.
    struck: AtomicBool,
    /// How many sets of keys were used up before the present one.
    round: AtomicUsize,
    checks: Mutex<Vec<ObservedCheck>>,
    pub payment: Mutex<LockHistory>,
    pub resource: Mutex<LockHistory>,
    pub acts: Mutex<ActHistory>,
}

/// What all workers observed.
#[derive(Default)]
pub struct LoadHistory {
    pub checks: Vec<ObservedCheck>,
    pub payment: LockHistory,
    pub resource: LockHistory,
    pub acts: ActHistory,
}

impl LoadState {
    /// The time since the start of the load.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// The set of keys in use.
    pub fn round(&self) -> usize {
        self.round.load(Ordering::Acquire)
    }
}

/// A running load.
pub struct Load {
    state: Arc<LoadState>,
    tasks: Vec<JoinHandle<()>>,
    addresses: Vec<String>,
    prepared: Prepared,
    runtime: Runtime,
}

impl Load {
    /// Starts all workers over these nodes.
    pub fn start(addresses: &[String], prepared: Prepared) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build().unwrap();
        let state = Arc::new(LoadState {
            start: Instant::now(),
            stop: AtomicBool::new(false),
            struck: AtomicBool::new(false),
            round: AtomicUsize::new(0),
            checks: Mutex::default(),
            payment: Mutex::default(),
            resource: Mutex::default(),
            acts: Mutex::default(),
        });
        let mut tasks = Vec::new();
        for worker in 0..WORKERS {
            let address = addresses[worker % addresses.len()].clone();
            tasks.push(runtime.spawn(counted(Arc::clone(&state), address, worker)));
        }
        for (node, address) in addresses.iter().enumerate() {
            let worker = || (Arc::clone(&state), address.clone(), node);
            tasks.push(runtime.spawn(blocked(worker())));
            tasks.push(runtime.spawn(control(worker())));
            tasks.push(runtime.spawn(act_load::ask(worker())));
        }
        let workers = lock_load::workers(&state, addresses);
        tasks.extend(workers.into_iter().map(|worker| runtime.spawn(worker)));
        Self { state, tasks, addresses: addresses.to_vec(), prepared, runtime }
    }

    /// The time since the start of the load.
    pub fn now(&self) -> Duration {
        self.state.now()
    }

    /// Marks the start of the fault, during which operators act on every node. With
    /// `makes_durable`, further blocks follow.
    pub fn mark_fault(&mut self, makes_durable: bool) {
        self.state.struck.store(true, Ordering::Release);
        self.state.acts.lock().unwrap().open += ACTS;
        for (node, address) in self.addresses.iter().enumerate() {
            let actor = Actor::new(Arc::clone(&self.state), address, node, self.state.round());
            let acts = actor.act(self.prepared.clone(), makes_durable);
            self.tasks.push(self.runtime.spawn(acts));
        }
    }

    /// Whether a block was durable since this instant.
    pub fn is_durable_since(&self, instant: Duration) -> bool {
        self.state.acts.lock().unwrap().durable_after(instant).is_some()
    }

    /// Whether all keys of the smaller limit are used up.
    pub fn is_used_up(&self) -> bool {
        let round = self.state.round();
        let checks = self.state.checks.lock().unwrap();
        used_up(&checks, early_keys(round), self.now()) == early_keys(round).count()
    }

    /// Uses new keys from now on.
    pub fn begin_round(&self, round: usize) {
        self.state.round.store(round, Ordering::Release);
    }

    /// Whether an answer since this instant was degraded, failed, or a refused lock, or an act was
    /// acknowledged or not obeyed.
    pub fn is_disturbed_since(&self, instant: Duration) -> bool {
        let acts = self.state.acts.lock().unwrap();
        let is_new = |act: &Act| act.acknowledged >= instant;
        if acts.open > 0 || acts.acts.iter().any(is_new) {
            return true;
        }
        let is_obeyed = |check: &ObservedCheck| {
            check.caller != CallerKind::Act || check.allowed == acts.acts[check.key].allows
        };
        let is_bad =
            |check: &&ObservedCheck| check.degraded || check.status != 200 || !is_obeyed(check);
        let checks = self.state.checks.lock().unwrap();
        let recent = checks.iter().rev().take_while(|check| check.received >= instant);
        let locks = [&self.state.payment, &self.state.resource];
        let refused = locks.iter().any(|kind| kind.lock().unwrap().refused_since(instant) > 0);
        recent.filter(is_bad).count() > 0 || refused
    }

    /// Stops all workers and returns what they observed.
    pub fn finish(self) -> LoadHistory {
        self.state.stop.store(true, Ordering::Release);
        for task in self.tasks {
            self.runtime.block_on(task).unwrap();
        }
        self.runtime.shutdown_background();
        let state = self.state;
        let take = |kind: &Mutex<LockHistory>| std::mem::take(&mut *kind.lock().unwrap());
        LoadHistory {
            checks: std::mem::take(&mut *state.checks.lock().unwrap()),
            payment: take(&state.payment),
            resource: take(&state.resource),
            acts: std::mem::take(&mut *state.acts.lock().unwrap()),
        }
    }
}

/// One of the workers whose keys have limits; it calls all keys in turn.
async fn counted(state: Arc<LoadState>, address: String, worker: usize) {
    let mut client = HttpClient::new(&address);
    let mut ticks = interval(Duration::from_secs(1) * WORKERS as u32 / CHECKS_PER_SECOND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut next = worker * KEYS / WORKERS;
    while !state.is_stopped() {
        ticks.tick().await;
        let key = state.round() * KEYS + next % KEYS;
        next += 1;
        let body = check_body(limit_of(key).0, &format!("c-{key}"));
        let node = worker % NODES;
        observe(&state, &mut client, CallerKind::Counted, (node, key), &body).await;
    }
}

/// Blocked callers of one node.
async fn blocked((state, address, node): NodeWorker) {
    let mut client = HttpClient::new(&address);
    let mut ticks = interval(BLOCKED_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut next = 0;
    while !state.is_stopped() {
        ticks.tick().await;
        let has_begun = state.struck.load(Ordering::Acquire);
        let key = next % if has_begun { BLOCKED + UNSEEN } else { BLOCKED };
        next += 1;
        let body = check_body("guard", &format!("ban-{key}"));
        observe(&state, &mut client, CallerKind::Blocked, (node, key), &body).await;
    }
}

/// Calls that need no store: what they take is the machine's part of every answer.
async fn control((state, address, node): NodeWorker) {
    let mut client = HttpClient::new(&address);
    let mut ticks = interval(CONTROL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !state.is_stopped() {
        ticks.tick().await;
        observe(&state, &mut client, CallerKind::Control, (node, 0), "").await;
    }
}

/// Sends a check of a key to a node, and keeps what was answered.
pub async fn observe(
    state: &LoadState,
    client: &mut HttpClient,
    caller: CallerKind,
    (node, key): (usize, usize),
    body: &str,
) {
    let line = if caller == CallerKind::Control { "GET /healthz" } else { "POST /v1/check" };
    let sent = state.now();
    let answer = client.call(line, body).await;
    let received = state.now();
    let (status, body) = answer.map(|answer| (answer.status, answer.body)).unwrap_or_default();
    let check = ObservedCheck {
        caller,
        node,
        key,
        sent,
        received,
        status,
        allowed: body["allowed"] == true,
        degraded: body["degraded"] == true,
    };
    state.checks.lock().unwrap().push(check);
}
