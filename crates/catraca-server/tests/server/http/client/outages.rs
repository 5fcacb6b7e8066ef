//! A server that dies, hangs or loses answers: calls end in time, and none is charged twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use catraca::core::decision::{Decision, Reason};
use catraca::settlement::SettleState;
use catraca::{Check, Client, ClientError, FailMode, Outcome, Settle};
use tokio::time::sleep;

use super::dropping_proxy::DroppingProxy;
use super::{CATALOG, builder, client, used};
use crate::test_server::{TestServer, catalog_file};

/// How much later than its deadline a call may end.
const LATE_MAX: Duration = Duration::from_millis(50);
const DEADLINE: Duration = Duration::from_millis(200);
/// Longer than any step of a test takes.
const STEP_MAX: Duration = Duration::from_secs(30);

fn check() -> Check<'static> {
    Check::new("free", [("ip", "198.51.100.7")])
}

/// What callers saw.
#[derive(Default)]
struct CallerCounts {
    decided: AtomicU64,
    degraded: AtomicU64,
    /// The longest call, in microseconds.
    longest: AtomicU64,
    /// The longest time in which this thread did not run, in microseconds: other processes may use
    /// the cores. All callers run on this thread.
    longest_pause: AtomicU64,
    done: AtomicBool,
}

impl CallerCounts {
    async fn wait_for(&self, counter: &AtomicU64, more: u64) {
        let wanted = counter.load(Ordering::SeqCst) + more;
        let begun = Instant::now();
        while counter.load(Ordering::SeqCst) < wanted {
            assert!(begun.elapsed() < STEP_MAX, "no {more} further calls");
            sleep(Duration::from_millis(1)).await;
        }
    }

    fn longest_pause(&self) -> Duration {
        Duration::from_micros(self.longest_pause.load(Ordering::SeqCst))
    }

    fn assert_in_time(&self) {
        let pause = self.longest_pause();
        let longest = Duration::from_micros(self.longest.load(Ordering::SeqCst));
        println!("the longest call took {longest:?}, the longest pause of the thread {pause:?}");
        assert!(longest <= DEADLINE + LATE_MAX + pause, "{longest:?}, paused for {pause:?}");
    }
}

async fn call_until_done(client: Client, fail_mode: FailMode, counts: Arc<CallerCounts>) {
    while !counts.done.load(Ordering::SeqCst) {
        let begun = Instant::now();
        let answer = client.check(&check()).await;
        counts.longest.fetch_max(begun.elapsed().as_micros() as u64, Ordering::SeqCst);
        let is_decided = matches!(&answer, Ok(decision) if !decision.degraded);
        match answer {
            Ok(decision) if is_decided => assert!(decision.allowed),
            answer => assert_answered_by(&fail_mode, answer),
        }
        let counter = if is_decided { &counts.decided } else { &counts.degraded };
        counter.fetch_add(1, Ordering::SeqCst);
        // A refused connection fails at once: the loop must leave room for the others.
        tokio::task::yield_now().await;
    }
}

/// The answer to a check that the server did not decide.
fn assert_answered_by(fail_mode: &FailMode, answer: Result<Decision, ClientError>) {
    match (fail_mode, answer) {
        (FailMode::Error, Err(error)) => assert!(error.is_unavailable(), "{error}"),
        (FailMode::Open, Ok(decision)) => {
            assert!(decision.allowed && decision.reason == Reason::Unavailable);
        }
        (FailMode::Closed, Ok(decision)) => {
            assert!(!decision.allowed && decision.reason == Reason::Unavailable);
        }
        (mode, answer) => panic!("{mode:?} answered {answer:?}"),
    }
}

async fn measure_pauses(counts: Arc<CallerCounts>) {
    while !counts.done.load(Ordering::SeqCst) {
        let begun = Instant::now();
        sleep(Duration::from_millis(1)).await;
        counts.longest_pause.fetch_max(begun.elapsed().as_micros() as u64, Ordering::SeqCst);
    }
}

fn start_callers(
    client: &Client,
    fail_mode: &FailMode,
) -> (Arc<CallerCounts>, Vec<tokio::task::JoinHandle<()>>) {
    let counts = Arc::new(CallerCounts::default());
    let mut tasks = vec![tokio::spawn(measure_pauses(Arc::clone(&counts)))];
    for _ in 0..8 {
        let calls = call_until_done(client.clone(), fail_mode.clone(), Arc::clone(&counts));
        tasks.push(tokio::spawn(calls));
    }
    (counts, tasks)
}

async fn end_callers(counts: &CallerCounts, tasks: Vec<tokio::task::JoinHandle<()>>) {
    counts.done.store(true, Ordering::SeqCst);
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_killed_server_lets_callers_pass_if_the_mode_is_open() {
    kill_and_restart(FailMode::Open).await;
}

#[tokio::test]
async fn a_killed_server_denies_callers_if_the_mode_is_closed() {
    kill_and_restart(FailMode::Closed).await;
}

#[tokio::test]
async fn a_killed_server_is_an_error_by_default() {
    assert!(matches!(FailMode::default(), FailMode::Error));
    kill_and_restart(FailMode::default()).await;
}

/// Kills the server under load and starts it again: every call ends in time with the answer of the
/// fail mode, and the server decides within a second of its start.
async fn kill_and_restart(fail_mode: FailMode) {
    let file = catalog_file(CATALOG);
    let server = TestServer::from_file(&file);
    let address = server.address.clone();
    let client = builder(&address).deadline(DEADLINE).fail(fail_mode.clone()).build().unwrap();
    let (counts, tasks) = start_callers(&client, &fail_mode);
    counts.wait_for(&counts.decided, 200).await;
    drop(server); // kills the process
    counts.wait_for(&counts.degraded, 200).await;
    let restart = tokio::task::spawn_blocking(move || TestServer::from_file_on(&address, &file));
    let server = restart.await.unwrap();
    let back_at = Instant::now();
    counts.wait_for(&counts.decided, 1).await;
    println!("the first decision came {:?} after the start", back_at.elapsed());
    assert!(back_at.elapsed() < Duration::from_secs(1) + counts.longest_pause());
    counts.wait_for(&counts.decided, 200).await;
    end_callers(&counts, tasks).await;
    counts.assert_in_time();
    drop(server);
}

#[tokio::test]
async fn a_server_that_hangs_costs_the_deadline_and_no_more() {
    let server = TestServer::with_catalog(CATALOG);
    let client = builder(&server.address).deadline(DEADLINE).fail(FailMode::Open).build().unwrap();
    let (counts, tasks) = start_callers(&client, &FailMode::Open);
    counts.wait_for(&counts.decided, 100).await;
    server.signal("STOP");
    counts.wait_for(&counts.degraded, 24).await;
    server.signal("CONT");
    counts.wait_for(&counts.decided, 100).await;
    end_callers(&counts, tasks).await;
    counts.assert_in_time();
}

#[tokio::test]
async fn without_a_server_each_mode_answers_and_calls_without_a_mode_fail() {
    let address = TestServer::with_catalog(CATALOG).address.clone(); // its process has ended
    let client = builder(&address).deadline(DEADLINE).build().unwrap();
    let error = client.check(&check()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    let open = client.with_fail_mode(FailMode::Open).check(&check()).await.unwrap();
    let closed = client.with_fail_mode(FailMode::Closed).check(&check()).await.unwrap();
    assert!(open.allowed && open.degraded && !closed.allowed && closed.degraded);
    assert_eq!((open.reason, closed.reason), (Reason::Unavailable, Reason::Unavailable));
    let open = client.with_fail_mode(FailMode::Open);
    assert!(open.peek(&check()).await.is_err());
    assert!(open.settle(&Settle::ticket("t", &Outcome::status(200))).await.is_err());
}

#[tokio::test]
async fn a_check_whose_answer_was_lost_is_charged_once() {
    let server = TestServer::with_catalog(CATALOG);
    let proxy = DroppingProxy::start(&server.address, 2);
    let client = builder(&proxy.address).build().unwrap();
    let mut interrupted = 0;
    for _ in 0..40 {
        match client.check(&check()).await {
            Ok(decision) => assert!(decision.allowed),
            Err(ClientError::Interrupted { .. }) => interrupted += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((interrupted, proxy.lost()), (20, 20));
    assert_eq!(used(&server, "198.51.100.7").await, 40);
}

#[tokio::test]
async fn a_settle_whose_answer_was_lost_is_sent_again_and_applied_once() {
    let server = TestServer::with_catalog(CATALOG);
    let lookup = Check::new("lookup", [("payer", "a")]);
    let ticket = client(&server).check(&lookup).await.unwrap().ticket.unwrap();
    let proxy = DroppingProxy::start(&server.address, 2);
    let client = builder(&proxy.address).build().unwrap();
    // The first answer of the proxy passes, the second is lost, the third passes.
    assert!(client.peek(&lookup).await.unwrap().allowed);
    let outcome = Outcome::status(404);
    let settled = client.settle(&Settle::ticket(&ticket, &outcome)).await.unwrap();
    assert_eq!((settled.state, proxy.lost()), (SettleState::Again, 1));
    assert_eq!(settled.rows[0].charged, 20);
    let left = client.peek(&lookup.clone().cost(0)).await;
    // This answer is lost too, and the peek repeated.
    assert_eq!((left.unwrap().remaining, proxy.lost()), (Some(1_000_000 - 20), 2));
}

#[tokio::test]
async fn a_server_that_closes_idle_connections_costs_no_check() {
    let catalog = format!("{CATALOG}[server]\nidle_timeout = '1s'\n");
    let server = TestServer::with_catalog(&catalog);
    let client = client(&server);
    for _ in 0..3 {
        client.check(&check()).await.unwrap();
        // Longer than the server keeps an idle connection.
        sleep(Duration::from_millis(1_500)).await;
    }
    assert_eq!(used(&server, "198.51.100.7").await, 3);
}
