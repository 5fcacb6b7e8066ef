//! A server that crashes, restarts or is stopped: calls end in time, no batch is applied twice, no
//! acknowledged batch is lost, and the store recovers with the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use catraca::postgres::{PostgresOptions, PostgresStore};
use catraca::store::{SharedStore, StoreError, When};
use catraca_core::batch::Reply;
use catraca_core::time::Time;

use super::helpers::{Database, bucket, check, gate, peek, row, runtime, settle, settled};
use catraca_testkit::pause_watch::PauseWatch;
use catraca_testkit::postgres::{PostgresServer, kill};

const AT: Time = Time::from_micros(1_784_000_000_000_000);
const SIZE: i64 = 1_000_000;
const CALLERS: u64 = 16;
/// The maximum time until a store uses a recovered server.
const BACK: Duration = Duration::from_secs(2);

/// The marker of each settle of a caller, and whether it was acknowledged.
type SettleLog = Vec<(u64, bool)>;

/// Settles one marker after the other until `ends` is set.
async fn load(store: Arc<PostgresStore>, caller: u64, ends: Arc<AtomicU64>) -> SettleLog {
    let mut log = Vec::new();
    for number in 0.. {
        if ends.load(Ordering::Relaxed) != 0 {
            break;
        }
        let mark = 1_000 + number * CALLERS + caller;
        let answer = settled(&store, &settle(mark, 1, bucket(SIZE), AT), AT).await;
        log.push((mark, answer.is_ok()));
        if answer.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    log
}

/// Waits until the store answers 40 times in a row: when one session crashes, the server ends the
/// others a moment later. Returns the time of the last failure.
async fn until_back(store: &PostgresStore) -> Duration {
    let start = Instant::now();
    let mut back = start.elapsed();
    let mut in_a_row = 0;
    while in_a_row < 40 {
        assert!(start.elapsed() < Duration::from_secs(30), "the store does not recover");
        in_a_row += 1;
        if store.status().await.is_err() {
            in_a_row = 0;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        if in_a_row == 0 {
            back = start.elapsed();
        }
    }
    back
}

fn crash(server: &PostgresServer, how: &str) {
    if how == "a backend" {
        let pid = server
            .psql(
                "postgres",
                "SELECT pid FROM pg_stat_activity
            WHERE application_name = 'catraca' LIMIT 1",
            )
            .concat();
        return pid.iter().for_each(|pid| kill("KILL", pid));
    }
    server.stop(how);
    server.run();
}

#[test]
fn a_server_that_dies_under_load_applies_nothing_twice_and_loses_nothing() {
    let database = Database::on(Arc::new(PostgresServer::start()));
    let runtime = runtime();
    let options = PostgresOptions { deadline: Duration::from_secs(1), ..Default::default() };
    let store = Arc::new(runtime.block_on(database.open(options)));
    let ends = Arc::new(AtomicU64::new(0));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| runtime.spawn(load(Arc::clone(&store), caller, Arc::clone(&ends))))
        .collect();
    let mut incarnations = vec![runtime.block_on(store.status()).unwrap().incarnation];
    for how in ["QUIT", "a backend", "INT", "KILL", "a backend"] {
        runtime.block_on(async { tokio::time::sleep(Duration::from_millis(300)).await });
        crash(&database.server, how);
        let took = runtime.block_on(until_back(&store));
        println!("{how}: back after {took:?}");
        assert!(took < BACK, "{how}: {took:?}");
        incarnations.push(runtime.block_on(store.status()).unwrap().incarnation);
    }
    ends.store(1, Ordering::Relaxed);
    let log: SettleLog =
        callers.into_iter().flat_map(|caller| runtime.block_on(caller).unwrap()).collect();
    let mut unknown = 0;
    for (mark, acknowledged) in &log {
        let batch = settle(*mark, 1, bucket(SIZE), AT);
        let again = runtime.block_on(settled(&store, &batch, AT)).unwrap();
        assert!(again || !acknowledged, "mark {mark} was acknowledged and is not known");
        unknown += u64::from(!acknowledged);
    }
    println!("{} settles, {unknown} of them without an answer", log.len());
    assert!(unknown > 0 && log.len() > 100, "the load met the crashes");
    let look = peek(row(1, bucket(SIZE)));
    let Reply::Check(left) = runtime.block_on(store.apply(&look, When::At(AT))).unwrap() else {
        panic!("a peek answered something else");
    };
    assert_eq!(left.rows[0].free, SIZE - log.len() as i64, "each of them once");
    assert_ne!(incarnations[0], incarnations[1], "a restart is another incarnation");
}

/// A server whose processes are all stopped (SIGSTOP); they continue on drop.
struct StoppedServer(Vec<String>);

impl StoppedServer {
    /// Stops the postmaster first, so that it starts no other processes.
    fn stop(server: &PostgresServer) -> Self {
        let file = server.data().join("postmaster.pid");
        let id = std::fs::read_to_string(file).unwrap().lines().next().unwrap().to_owned();
        kill("STOP", &id);
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        let children = children.split_whitespace().map(str::to_owned);
        let stopped = Self([id.clone()].into_iter().chain(children).collect());
        stopped.0.iter().for_each(|id| kill("STOP", id));
        stopped
    }
}

impl Drop for StoppedServer {
    fn drop(&mut self) {
        self.0.iter().for_each(|id| kill("CONT", id));
    }
}

/// A stopped server: it accepts connections and never answers.
#[test]
fn a_server_that_sleeps_is_unavailable_in_time_and_back_at_once() {
    let database = Database::on(Arc::new(PostgresServer::start()));
    let runtime = runtime();
    let deadline = Duration::from_millis(250);
    let options = PostgresOptions { deadline, ..Default::default() };
    let store = runtime.block_on(database.open(options));
    let batch = gate([row(1, bucket(100))]);
    runtime.block_on(check(&store, &batch)).unwrap();
    let stopped = StoppedServer::stop(&database.server);
    let machine = PauseWatch::start();
    let mut longest = Duration::ZERO;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        let asked = Instant::now();
        let answer = runtime.block_on(check(&store, &batch));
        longest = longest.max(asked.elapsed());
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
    }
    drop(stopped);
    let back = runtime.block_on(until_back(&store));
    println!("the longest wait was {longest:?}; back after {back:?}");
    assert!(longest < deadline * 3 + machine.added_to_a_call(), "{longest:?}");
    assert!(back < BACK, "{back:?}");
    let free = runtime.block_on(check(&store, &peek(row(1, bucket(100))))).unwrap().rows[0].free;
    let most = PostgresOptions::default().connections as i64;
    assert!((99 - most..=99).contains(&free), "{free} free: sent at most once per connection");
}

/// Calls to a server that is known to be unavailable fail at once.
#[test]
fn calls_to_a_server_that_is_away_end_at_once() {
    let database = Database::on(Arc::new(PostgresServer::start()));
    let runtime = runtime();
    let store = runtime.block_on(database.open(PostgresOptions::default()));
    database.server.stop("INT");
    let batch = gate([row(1, bucket(100))]);
    let is_disconnected = |store: &PostgresStore| store.stats().connected == 0;
    let start = Instant::now();
    while !is_disconnected(&store) && start.elapsed() < Duration::from_secs(5) {
        drop(runtime.block_on(check(&store, &batch)));
    }
    let start = Instant::now();
    for _ in 0..100 {
        let answer = runtime.block_on(check(&store, &batch));
        let Err(StoreError::Unavailable { reason }) = answer else { panic!("{answer:?}") };
        assert!(reason.contains("PostgreSQL"), "{reason}");
    }
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(store.stats().waiting, 0);
}
