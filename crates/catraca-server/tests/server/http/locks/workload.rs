//! A workload of concurrent callers, and the history of their lock and slot calls.
//!
//! The time of a request is taken before it is sent and that of a response after it was read: the
//! call took effect between them.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use catraca_testkit::generate::Rng;
use catraca_testkit::locks::history::{ALL, ClockTolerance, ObservedAnswer, ObservedCall, judge};
use serde_json::{Value, json};

use crate::raw_connection::{JSON, RawConnection, head};
use crate::test_server::TestServer;

/// The time to live of every lease, in microseconds.
pub const TTL: i64 = 300_000;
/// The origin of the slots' times, in milliseconds since the Unix epoch.
const NOON: i64 = 1_900_000_000_000;

/// The calls as their callers observed them.
pub struct History {
    observed: Vec<ObservedCall>,
    /// How far the wall clock was stepped during the run, in microseconds, in either direction.
    pub stepped: i64,
}

struct Workload {
    started: Instant,
    /// The smallest and the largest observed offset of the wall clock to `started`, in
    /// microseconds.
    wall_offset: Mutex<(i64, i64)>,
    address: Mutex<String>,
    finished: AtomicBool,
    observed: Mutex<Vec<ObservedCall>>,
}

/// One caller, which reuses its connection until an error.
struct Caller<'w> {
    workload: &'w Workload,
    connection: Option<RawConnection>,
}

/// A call to acquire something, and the path of the call that ends it.
struct PlannedCall {
    observed: ObservedCall,
    path: &'static str,
    body: Value,
    end: &'static str,
}

impl Workload {
    fn now(&self) -> i64 {
        self.sample_clocks();
        self.monotonic()
    }

    fn monotonic(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap()
    }

    /// Samples the offset of the clocks. A sample counts only if it took less than 20 us: a pause
    /// between the two readings would look like a step of the clock.
    fn sample_clocks(&self) {
        let before = self.monotonic();
        let wall = i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap();
        if self.monotonic() - before < 20 {
            let mut wall_offset = self.wall_offset.lock().unwrap();
            *wall_offset = (wall_offset.0.min(wall - before), wall_offset.1.max(wall - before));
        }
    }
}

impl Caller<'_> {
    fn call(&mut self, path: &str, body: &Value) -> Option<(u16, Value)> {
        if self.connection.is_none() {
            let address = self.workload.address.lock().unwrap().clone();
            std::net::TcpStream::connect(&address).ok()?;
            self.connection = std::panic::catch_unwind(|| RawConnection::open(&address)).ok();
        }
        let answer =
            self.connection.as_mut().and_then(|connection| post_once(connection, path, body));
        if answer.is_none() {
            self.connection = None;
            // The server may be restarting; try again soon.
            thread::park_timeout(Duration::from_millis(5));
        }
        answer
    }

    /// Acquires something and releases it most of the time.
    fn run_round(&mut self, rng: &mut Rng) {
        let mut planned = if rng.chance(40) { plan_slot(rng) } else { plan_lock(rng) };
        planned.observed.sent = self.workload.now();
        let response = self.call(planned.path, &planned.body);
        planned.observed.answered = Some(self.workload.now());
        match response {
            Some((200, grant)) => {
                planned.observed.answer = self.maybe_release(&grant, planned.end, rng)
            }
            Some((409, _)) => {}
            Some((503, response)) if response["code"] == "lock-store-unavailable" => {
                // The store may apply the call when it is back, and the server undoes it only after
                // that: the lease may exist one second longer than its time to live.
                planned.observed.answer = ObservedAnswer::Unknown { ttl: TTL + 1_000_000 };
            }
            Some((503, _)) => {
                thread::park_timeout(Duration::from_millis(5));
                return;
            }
            Some((status, other)) => panic!("{status}: {other}"),
            None => {
                planned.observed.answered = None;
                planned.observed.answer = ObservedAnswer::Unknown { ttl: TTL };
            }
        }
        self.workload.observed.lock().unwrap().push(planned.observed);
    }

    /// Releases the lease most of the time; returns the grant as the caller observed it.
    fn maybe_release(&mut self, grant: &Value, end: &str, rng: &mut Rng) -> ObservedAnswer {
        let fence = grant["fence"].as_i64().unwrap();
        // The time that remained when the server answered. `judge` counts it from the request on,
        // so that latency never makes a lease look longer than it was.
        let ttl = grant["ttl_ms"].as_i64().unwrap() * 1_000;
        let mut release_sent = None;
        let mut released = None;
        if rng.chance(85) {
            release_sent = Some(self.workload.now());
            let ended = self.call(end, &json!({ "lease_id": grant["lease_id"] }));
            if ended.is_some_and(|(_, ended)| ended["outcome"] == "released") {
                released = Some(self.workload.now());
            }
        }
        ObservedAnswer::Granted { fence, ttl, release_sent, released }
    }
}

fn post_once(connection: &mut RawConnection, path: &str, body: &Value) -> Option<(u16, Value)> {
    let body = body.to_string();
    let head = head(&format!("POST {path}"), &[JSON], Some(body.len()));
    connection.try_send_bytes(&[&head, body.as_bytes()].concat()).ok()?;
    let answer = connection.try_read_response().ok()?;
    Some((answer.status, serde_json::from_str(&answer.body).ok()?))
}

fn plan_lock(rng: &mut Rng) -> PlannedCall {
    let name = rng.pick(&["p", "q", "r", "s", "t"]).to_owned();
    let wait = rng.pick(&[0, 0, 0, 50, 200]);
    let body = json!({ "key": name, "ttl_ms": TTL / 1_000, "wait_ms": wait });
    planned_call(name, ALL, "/v1/locks/acquire", body, "/v1/locks/release")
}

fn plan_slot(rng: &mut Rng) -> PlannedCall {
    let calendar = rng.pick(&["ana", "rui"]);
    let start = rng.within(0, 40);
    let end = start + rng.within(1, 6);
    let body = json!({
        "calendar": calendar, "ttl_ms": TTL / 1_000,
        "start": NOON + start * 60_000, "end": NOON + end * 60_000,
    });
    planned_call(
        format!("calendar {calendar}"),
        (start, end),
        "/v1/slots/hold",
        body,
        "/v1/slots/cancel",
    )
}

fn planned_call(
    name: String,
    range: (i64, i64),
    path: &'static str,
    body: Value,
    end: &'static str,
) -> PlannedCall {
    let observed =
        ObservedCall { name, range, sent: 0, answered: None, answer: ObservedAnswer::Conflict };
    PlannedCall { observed, path, body, end }
}

/// Runs the workload while `act` does something to the server, four times; returns the history.
pub fn record_history(
    file: &Path,
    seed: u64,
    mut act: impl FnMut(TestServer) -> TestServer,
) -> History {
    let mut server = TestServer::from_file(file);
    let workload = Workload {
        started: Instant::now(),
        wall_offset: Mutex::new((i64::MAX, i64::MIN)),
        address: Mutex::new(server.address.clone()),
        finished: AtomicBool::new(false),
        observed: Mutex::default(),
    };
    thread::scope(|scope| {
        for number in 0..8 {
            let workload = &workload;
            scope.spawn(move || {
                let mut rng = Rng::new(seed + number);
                let mut caller = Caller { workload, connection: None };
                while !workload.finished.load(Ordering::SeqCst) {
                    caller.run_round(&mut rng);
                }
            });
        }
        for _ in 0..4 {
            thread::park_timeout(Duration::from_millis(900));
            server = act(server);
            (*workload.address.lock().unwrap()).clone_from(&server.address);
        }
        thread::park_timeout(Duration::from_millis(900));
        workload.finished.store(true, Ordering::SeqCst);
    });
    let (least, most) = workload.wall_offset.into_inner().unwrap();
    History { observed: workload.observed.into_inner().unwrap(), stepped: most - least }
}

/// Asserts that the history is long enough and has no conflict. `early` is how far the clock of
/// the leases was stepped.
pub fn assert_valid(History { observed, .. }: &History, early: i64) {
    let granted =
        observed.iter().filter(|one| matches!(one.answer, ObservedAnswer::Granted { .. })).count();
    println!("{} calls, {granted} grants", observed.len());
    assert!(observed.len() > 1_000 && granted > 100, "{} calls, {granted} grants", observed.len());
    // A lease may end late, such as one whose response was lost: conflicts up to twice the time to
    // live after its expiry are allowed.
    let wrong = judge(observed, ClockTolerance { early, late: 2 * TTL });
    assert!(wrong.is_empty(), "{} of {}: {}", wrong.len(), observed.len(), wrong[0]);
}
