//! Runs a case: starts the nodes, blocks callers, begins the load, strikes, mends, and judges.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use catraca_conformance::Scratch;
use catraca_testkit::postgres::{PASSWORD, PostgresServer, shared_server};
use tokio::runtime::Runtime;

use super::bounds::{Bounds, TimeBounds};
use super::http_client::{HttpClient, HttpResponse};
use super::load::{BLOCKED, Load, UNSEEN};
use super::measures::{FaultRound, Measures};
use super::node::{NODES, Node, program};
use super::report;

/// By then, keys of the smaller limit are used up.
const WARM_UP: Duration = Duration::from_secs(5);
/// The load goes on until nothing was disturbed for this long.
const CALM: Duration = Duration::from_secs(2);
const TAIL_MIN: Duration = Duration::from_secs(3);
const TAIL_MAX: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);

/// The name of a case, and what it is about.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name of its test.
    pub name: &'static str,
    pub topology: &'static str,
    pub fault: &'static str,
}

/// A store that several nodes share.
pub trait Topology {
    /// The URL of the store for a node; each node prefers another server.
    fn store_url(&self, node: usize) -> String;

    /// Further lines of `[store]`.
    fn store_lines(&self) -> &'static str {
        ""
    }

    /// The URL of the records, if the store's servers have them.
    fn records_url(&self) -> Option<String> {
        None
    }

    /// Learns which keys are where, before the load begins.
    fn locate_keys(&mut self, _api: &mut Api) {}

    /// The keys on the server with the fault; `None` if that is the only server.
    fn struck_keys(&self) -> Option<BTreeSet<usize>> {
        None
    }

    /// Waits until the fault can be repeated.
    fn wait_until_whole(&self) {}
}

/// Calls the API of a node, one call after the other.
pub struct Api {
    client: HttpClient,
    runtime: Runtime,
}

impl Api {
    fn new(address: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { client: HttpClient::new(address), runtime }
    }

    /// A call that must succeed.
    pub fn call(&mut self, line: &str, body: &str) -> HttpResponse {
        let answer = self.runtime.block_on(self.client.call(line, body)).unwrap();
        assert!((200..300).contains(&answer.status), "{line} {body}: {}", answer.body);
        answer
    }
}

/// Whether cases are wanted.
pub fn is_wanted() -> bool {
    if program().is_none() {
        println!("skipped: `cargo xtask faults` runs this");
    }
    program().is_some()
}

/// Runs a case over a topology. `strike` begins the fault, which lasts for `outage`, and `mend`
/// ends it.
pub fn run<T: Topology>(
    case: Case,
    topology: T,
    bounds: Bounds,
    outage: Duration,
    strike: impl FnMut(&mut T),
    mend: impl FnMut(&mut T),
) {
    run_schedule(case, topology, bounds, Schedule { times: 1, outage }, strike, mend);
}

/// Runs a case whose fault is over when it has begun, several times, each time on new keys.
pub fn run_repeatedly<T: Topology>(
    times: usize,
    case: Case,
    topology: T,
    bounds: Bounds,
    strike: impl FnMut(&mut T),
) {
    let schedule = Schedule { times, outage: Duration::ZERO };
    run_schedule(case, topology, bounds, schedule, strike, |_| ());
}

/// How often a fault happens, and how long it lasts.
#[derive(Clone, Copy)]
struct Schedule {
    times: usize,
    outage: Duration,
}

fn run_schedule<T: Topology>(
    case: Case,
    mut topology: T,
    bounds: Bounds,
    schedule: Schedule,
    mut strike: impl FnMut(&mut T),
    mut mend: impl FnMut(&mut T),
) {
    let started = Instant::now();
    let scratch = Scratch::new("faults").unwrap();
    let program = program().unwrap();
    let records = RecordsDatabase::of(&topology);
    let start = |node: usize| {
        let folder = scratch.path().join(node.to_string());
        let store = topology.store_url(node);
        Node::start(&program, &folder, &store, topology.store_lines(), &records.url)
    };
    let nodes: Vec<Node> = (0..NODES).map(start).collect();
    let addresses: Vec<String> = nodes.iter().map(|node| node.address.clone()).collect();
    let mut api = Api::new(&addresses[0]);
    topology.locate_keys(&mut api);
    for number in 0..BLOCKED + UNSEEN {
        let subject = format!(r#"{{"customer":"ban-{number}"}}"#);
        let body = format!(r#"{{"policy":"guard","subject":{subject},"for":"1h"}}"#);
        api.call("POST /v1/blocks", &body);
    }
    let load = Load::start(&addresses);
    let mut rounds = Vec::new();
    for round in 0..schedule.times {
        if round > 0 {
            topology.wait_until_whole();
            load.begin_round(round);
        }
        sleep(WARM_UP);
        let fault = load.now();
        load.mark_fault();
        strike(&mut topology);
        sleep(schedule.outage.saturating_sub(load.now() - fault));
        mend(&mut topology);
        let mended = load.now();
        wait_for_calm(&load, mended);
        rounds.push(FaultRound { fault, mended, calm: load.now() });
    }
    let (checks, payment, resource) = load.finish();
    let struck = topology.struck_keys();
    let found = Measures::new(&checks, &payment, &resource, &rounds, struck.as_ref());
    let violations = bounds.violations(&found, TimeBounds::wanted());
    report::write(&case, &bounds, &found, &violations, started.elapsed());
    drop(nodes);
    assert!(violations.is_empty(), "{}: {}", case.name, violations.join("; "));
}

/// Lets the load go on until nothing is disturbed any more.
fn wait_for_calm(load: &Load, mended: Duration) {
    while load.now() < mended + TAIL_MAX {
        sleep(POLL);
        let tail = load.now() - mended;
        if tail > TAIL_MIN && !load.is_disturbed_since(load.now() - CALM) {
            return;
        }
    }
}

/// The database of the records. The server is kept until the case has ended.
struct RecordsDatabase {
    url: String,
    _server: Option<Arc<PostgresServer>>,
}

impl RecordsDatabase {
    fn of(topology: &impl Topology) -> Self {
        if let Some(url) = topology.records_url() {
            return Self { url, _server: None };
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = shared_server();
        let name = format!("records_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        server.psql("postgres", &format!("CREATE DATABASE {name}"));
        let port = server.port;
        let url = format!("postgres://catraca:{PASSWORD}@127.0.0.1:{port}/{name}");
        Self { url, _server: Some(server) }
    }
}
