//! Runs a case: starts the nodes, blocks callers, begins the load, strikes, mends, and judges.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use catraca_conformance::Scratch;
use catraca_testkit::postgres::{PASSWORD, PostgresServer, shared_server};
use tokio::runtime::Runtime;

use super::act_load::Prepared;
use super::bounds::{Bounds, TimeBounds};
use super::http_client::{HttpClient, HttpResponse};
use super::load::{BLOCKED, Load, UNSEEN};
use super::measures::{Concerned, FaultRound, Measures};
use super::node::{NODES, Node, RecordsPlace, program};
use super::{catalog, report, rows};

/// By then, keys of the smaller limit are used up, except on a slow machine.
const WARM_UP: Duration = Duration::from_secs(5);
const WARM_UP_MAX: Duration = Duration::from_secs(30);
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

    /// The example of a node's sections in `deploy/`, if there is one for this topology.
    fn example(&self) -> Option<&'static str> {
        None
    }

    /// Further lines of `[store]`.
    fn store_lines(&self) -> &'static str {
        ""
    }

    /// Where the records of a node are, if not in a database of a server without faults.
    fn records(&self, _node: usize) -> Option<RecordsPlace> {
        None
    }

    /// Which servers have which keys. A failover changes it, and so do slots that move.
    fn primaries(&self) -> String {
        String::new()
    }

    /// The keys of all blocks in the records, in hexadecimal digits; empty if the topology does not
    /// look.
    fn recorded_blocks(&self) -> Vec<String> {
        Vec::new()
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

/// Runs a case over the topology that `start` starts. `strike` begins the fault, which lasts for
/// `outage`, and `mend` ends it.
pub fn run<T: Topology>(
    case: Case,
    start: impl FnOnce() -> Option<T>,
    bounds: Bounds,
    outage: Duration,
    mut strike: impl FnMut(&mut T),
    mut mend: impl FnMut(&mut T),
) {
    let schedule = Schedule { times: 1, outage };
    run_schedule(case, start, bounds, schedule, |t, _| strike(t), |t, _| mend(t));
}

/// As [`run`], of a fault of the nodes.
pub fn run_on_nodes<T: Topology>(
    case: Case,
    start: impl FnOnce() -> Option<T>,
    bounds: Bounds,
    outage: Duration,
    mut strike: impl FnMut(&mut [Node]),
    mut mend: impl FnMut(&mut [Node]),
) {
    let schedule = Schedule { times: 1, outage };
    run_schedule(case, start, bounds, schedule, |_, nodes| strike(nodes), |_, nodes| mend(nodes));
}

/// Runs a case whose fault is over when it has begun, several times, each time on new keys.
pub fn run_repeatedly<T: Topology>(
    times: usize,
    case: Case,
    start: impl FnOnce() -> Option<T>,
    bounds: Bounds,
    mut strike: impl FnMut(&mut T),
) {
    let schedule = Schedule { times, outage: Duration::ZERO };
    run_schedule(case, start, bounds, schedule, |t, _| strike(t), |_, _| ());
}

/// How often a fault happens, and how long it lasts.
#[derive(Clone, Copy)]
struct Schedule {
    times: usize,
    outage: Duration,
}

/// Without a built server, compares the case with its row of the document instead.
fn run_schedule<T: Topology>(
    case: Case,
    start: impl FnOnce() -> Option<T>,
    bounds: Bounds,
    schedule: Schedule,
    mut strike: impl FnMut(&mut T, &mut [Node]),
    mut mend: impl FnMut(&mut T, &mut [Node]),
) {
    let started = Instant::now();
    let Some(program) = program() else { return rows::check(&case, &bounds) };
    let Some(mut topology) = start() else { return };
    let scratch = Scratch::new("faults").unwrap();
    let records = RecordsDatabase::default();
    let start_node = |node: usize| {
        let folder = scratch.path().join(node.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let url = topology.store_url(node);
        let store = (url.as_str(), topology.store_lines());
        let place = topology.records(node).unwrap_or_else(|| records.place());
        let catalog = catalog::write(topology.example(), store, &place, &folder);
        Node::start(&program, &folder, &catalog)
    };
    let mut nodes: Vec<Node> = (0..NODES).map(start_node).collect();
    let addresses: Vec<String> = nodes.iter().map(|node| node.address.clone()).collect();
    let prepared = prepare(&mut topology, &mut Api::new(&addresses[0]), schedule.times);
    let mut load = Load::start(&addresses, prepared);
    let mut rounds = Vec::new();
    let mut unreplaced = 0;
    for round in 0..schedule.times {
        if round > 0 {
            topology.wait_until_whole();
            load.begin_round(round);
        }
        warm_up(&load);
        let before = bounds.replaces.then(|| topology.primaries());
        let fault = load.now();
        load.mark_fault(bounds.records_fail);
        strike(&mut topology, &mut nodes);
        sleep(schedule.outage.saturating_sub(load.now() - fault));
        mend(&mut topology, &mut nodes);
        let mended = load.now();
        wait_for_calm(&load, mended, bounds.records_fail);
        rounds.push(FaultRound { fault, mended, calm: load.now() });
        unreplaced += usize::from(before.is_some_and(|before| topology.primaries() == before));
    }
    let history = load.finish();
    let concerned = Concerned {
        keys: bounds.has_others.then(|| topology.struck_keys()).flatten(),
        node: bounds.dead_node,
        acts_wait: bounds.acts_wait,
        cut_off_node: bounds.cut_off_node,
        missing_blocks: match bounds.records_fail {
            true => missing_blocks(&history.acts.durable, &topology.recorded_blocks()),
            false => 0,
        },
        unreplaced,
    };
    let found = Measures::new(&history, &rounds, &concerned);
    let violations = bounds.violations(&found, TimeBounds::wanted());
    report::write(&case, &bounds, &found, &violations, started.elapsed());
    drop(nodes);
    assert!(violations.is_empty(), "{}: {}", case.name, violations.join("; "));
}

/// Finds out where keys are, and blocks callers.
fn prepare(topology: &mut impl Topology, api: &mut Api, rounds: usize) -> Prepared {
    topology.locate_keys(api);
    for number in 0..BLOCKED + UNSEEN {
        let subject = format!(r#"{{"customer":"ban-{number}"}}"#);
        let body = format!(r#"{{"policy":"guard","subject":{subject},"for":"1h"}}"#);
        api.call("POST /v1/blocks", &body);
    }
    Prepared::new(api, rounds)
}

/// How many of these blocks the records lack. The id of a block ends as its key does.
fn missing_blocks(blocks: &[(String, Duration)], keys: &[String]) -> usize {
    const DIGITS: usize = 10;
    let end = |text: &str| text[text.len() - DIGITS..].to_owned();
    let present: BTreeSet<String> = keys.iter().map(|key| end(key)).collect();
    blocks.iter().filter(|(id, _)| !present.contains(&end(id))).count()
}

/// Lets the load go on until keys of the smaller limit are used up.
fn warm_up(load: &Load) {
    let start = load.now();
    sleep(WARM_UP);
    while !load.is_used_up() && load.now() < start + WARM_UP_MAX {
        sleep(POLL);
    }
}

/// Lets the load go on until nothing is disturbed any more.
fn wait_for_calm(load: &Load, mended: Duration, records_fail: bool) {
    while load.now() < mended + TAIL_MAX {
        sleep(POLL);
        let tail = load.now() - mended;
        let is_durable = !records_fail || load.is_durable_since(mended);
        if tail > TAIL_MIN && is_durable && !load.is_disturbed_since(load.now() - CALM) {
            return;
        }
    }
}

/// A database of the records on a server without faults, which all nodes share. The server is kept
/// until the case has ended.
#[derive(Default)]
struct RecordsDatabase(OnceCell<(RecordsPlace, Arc<PostgresServer>)>);

impl RecordsDatabase {
    fn place(&self) -> RecordsPlace {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let create = || {
            let server = shared_server();
            let name = format!("records_{}", NEXT.fetch_add(1, Ordering::Relaxed));
            server.psql("postgres", &format!("CREATE DATABASE {name}"));
            let port = server.port;
            let url = format!("postgres://catraca:{PASSWORD}@127.0.0.1:{port}/{name}");
            (RecordsPlace::Shared(url), server)
        };
        self.0.get_or_init(create).0.clone()
    }
}
