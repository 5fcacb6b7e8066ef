//! A server that dies, restarts or sleeps: calls end in time, nothing is applied twice, nothing
//! that was acknowledged is lost, and work goes on as soon as it is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use catraca::postgres::{PostgresOptions, PostgresStore};
use catraca::store::{SharedStore, StoreError, When};
use catraca_core::batch::Reply;
use catraca_core::time::Time;

use crate::helpers::{Database, bucket, check, gate, peek, row, runtime, settle, settled};
use crate::server::{Server, kill};

const AT: Time = Time::from_micros(1_784_000_000_000_000);
const SIZE: i64 = 1_000_000;
const CALLERS: u64 = 16;
/// Nobody waits longer for a server that is back.
const BACK: Duration = Duration::from_secs(2);

/// What one caller was told of its settles, in order.
type Told = Vec<(u64, bool)>;

/// Settles one mark after the other until it is told to stop.
async fn load(store: Arc<PostgresStore>, caller: u64, ends: Arc<AtomicU64>) -> Told {
    let mut told = Vec::new();
    for number in 0.. {
        if ends.load(Ordering::Relaxed) != 0 {
            break;
        }
        let mark = 1_000 + number * CALLERS + caller;
        let answer = settled(&store, &settle(mark, 1, bucket(SIZE), AT), AT).await;
        told.push((mark, answer.is_ok()));
        if answer.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    told
}

/// Tries until the store answers again, and goes on to: when one of its sessions dies the server
/// ends the others a moment later. Says how long it took.
async fn until_back(store: &PostgresStore) -> Duration {
    let begun = Instant::now();
    let (mut back, mut in_a_row) = (begun.elapsed(), 0);
    while in_a_row < 40 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the store stays away");
        in_a_row += 1;
        if store.status().await.is_err() {
            in_a_row = 0;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        if in_a_row == 0 {
            back = begun.elapsed();
        }
    }
    back
}

fn crash(server: &Server, how: &str) {
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
    let (database, runtime) = (Database::on(Arc::new(Server::start())), runtime());
    let options = PostgresOptions { deadline: Duration::from_secs(1), ..Default::default() };
    let store = Arc::new(runtime.block_on(database.open(options)));
    let ends = Arc::new(AtomicU64::new(0));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| runtime.spawn(load(Arc::clone(&store), caller, Arc::clone(&ends))))
        .collect();
    let mut lives = vec![runtime.block_on(store.status()).unwrap().incarnation];
    for how in ["QUIT", "a backend", "INT", "KILL", "a backend"] {
        runtime.block_on(async { tokio::time::sleep(Duration::from_millis(300)).await });
        crash(&database.server, how);
        let took = runtime.block_on(until_back(&store));
        println!("{how}: back after {took:?}");
        assert!(took < BACK, "{how}: {took:?}");
        lives.push(runtime.block_on(store.status()).unwrap().incarnation);
    }
    ends.store(1, Ordering::Relaxed);
    let told: Told =
        callers.into_iter().flat_map(|caller| runtime.block_on(caller).unwrap()).collect();
    let mut unknown = 0;
    for (mark, acknowledged) in &told {
        let batch = settle(*mark, 1, bucket(SIZE), AT);
        let again = runtime.block_on(settled(&store, &batch, AT)).unwrap();
        assert!(again || !acknowledged, "mark {mark} was acknowledged and is not known");
        unknown += u64::from(!acknowledged);
    }
    println!("{} settles, {unknown} of them without an answer", told.len());
    assert!(unknown > 0 && told.len() > 100, "the load met the crashes");
    let look = peek(row(1, bucket(SIZE)));
    let Reply::Check(left) = runtime.block_on(store.apply(&look, When::At(AT))).unwrap() else {
        panic!("a peek answered something else");
    };
    assert_eq!(left.rows[0].free, SIZE - told.len() as i64, "each of them once");
    assert_ne!(lives[0], lives[1], "a restart is another life");
}

/// A server that is stopped with all of its processes, and goes on with this value's end.
struct Asleep(Vec<String>);

impl Asleep {
    /// The first process first, so that it makes no others.
    fn put(server: &Server) -> Self {
        let file = server.data().join("postmaster.pid");
        let id = std::fs::read_to_string(file).unwrap().lines().next().unwrap().to_owned();
        kill("STOP", &id);
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        let children = children.split_whitespace().map(str::to_owned);
        let asleep = Self([id.clone()].into_iter().chain(children).collect());
        asleep.0.iter().for_each(|id| kill("STOP", id));
        asleep
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        self.0.iter().for_each(|id| kill("CONT", id));
    }
}

/// A server that takes everything and answers nothing.
#[test]
fn a_server_that_sleeps_is_unavailable_in_time_and_back_at_once() {
    let (database, runtime) = (Database::on(Arc::new(Server::start())), runtime());
    let deadline = Duration::from_millis(250);
    let options = PostgresOptions { deadline, ..Default::default() };
    let store = runtime.block_on(database.open(options));
    let batch = gate([row(1, bucket(100))]);
    runtime.block_on(check(&store, &batch)).unwrap();
    let asleep = Asleep::put(&database.server);
    let mut longest = Duration::ZERO;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        let asked = Instant::now();
        let answer = runtime.block_on(check(&store, &batch));
        longest = longest.max(asked.elapsed());
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
    }
    drop(asleep);
    let back = runtime.block_on(until_back(&store));
    println!("the longest wait was {longest:?}; back after {back:?}");
    assert!(longest < deadline * 3, "{longest:?}");
    assert!(back < BACK, "{back:?}");
    let free = runtime.block_on(check(&store, &peek(row(1, bucket(100))))).unwrap().rows[0].free;
    let most = PostgresOptions::default().connections as i64;
    assert!((99 - most..=99).contains(&free), "{free} free: sent at most once per connection");
}

/// A server that is away is known to be: nobody waits for it.
#[test]
fn calls_to_a_server_that_is_away_end_at_once() {
    let (database, runtime) = (Database::on(Arc::new(Server::start())), runtime());
    let store = runtime.block_on(database.open(PostgresOptions::default()));
    database.server.stop("INT");
    let batch = gate([row(1, bucket(100))]);
    let away = |store: &PostgresStore| store.stats().connected == 0;
    let begun = Instant::now();
    while !away(&store) && begun.elapsed() < Duration::from_secs(5) {
        drop(runtime.block_on(check(&store, &batch)));
    }
    let begun = Instant::now();
    for _ in 0..100 {
        let answer = runtime.block_on(check(&store, &batch));
        let Err(StoreError::Unavailable { reason }) = answer else { panic!("{answer:?}") };
        assert!(reason.contains("PostgreSQL"), "{reason}");
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(store.stats().waiting, 0);
}
