//! Calls that reach the server when nobody waits for them any more: they do nothing.

use std::time::Duration;

use catraca::locks::LockStore;
use catraca::redis::{RedisLocks, RedisOptions, RedisStore};
use catraca::store::{Store, StoreError, When};
use catraca_core::batch::{Batch, BlockRow, CheckBatch, Reply, RowReply};
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::Penalty;
use catraca_core::lock::LockOutcome;
use catraca_core::lock::reply::AcquireReply;
use catraca_core::time::Span;
use catraca_testkit::blocking_store::BlockingStore;
use catraca_testkit::fault_proxy::{Fault, FaultProxy};
use catraca_testkit::redis::{RedisServer, until};
use catraca_testkit::fake_clock::FakeClockLibrary;
use tokio::runtime::Runtime;

use super::desk::{check, connect_with, passes};
use super::locks::acquire;

const CHARGED: u8 = 1;
const TO_BLOCK: u8 = 2;
const TO_FREE: u8 = 3;
const TO_FORGET: u8 = 4;

fn key(name: u8) -> Key {
    Key::from_bytes([name; 16])
}

fn block(name: u8) -> Batch {
    let (origin, note) = (Origin::Operator, BlockNote::default());
    let act = BlockProposal {
        penalty: Penalty::fixed(Span::from_secs(600)),
        origin,
        shadow: false,
        note,
    };
    Batch::Block(vec![BlockRow { key: key(name), act, past: None }])
}

/// What the store knows of a key.
fn seen(store: &impl Store, name: u8) -> RowReply {
    let Batch::Check(asked) = check(name, 1_000) else { panic!("not a check") };
    let peek = Batch::Check(CheckBatch { peek: true, ..asked });
    match store.apply(&peek, When::Store).unwrap() {
        Reply::Check(reply) => reply.rows[0].clone(),
        other => panic!("not an answer to a check: {other:?}"),
    }
}

/// What the store knows of all keys: what is free, and whether it is blocked.
fn all(store: &impl Store) -> [(i64, bool); 4] {
    [CHARGED, TO_BLOCK, TO_FREE, TO_FORGET].map(|name| {
        let row = seen(store, name);
        (row.free, row.block.is_some())
    })
}

/// Sends everything at once to a server that does not answer; each call is given up.
fn given_up(store: &BlockingStore<RedisStore>) {
    let free = Batch::Unblock(vec![key(TO_FREE)]);
    let calls = [check(CHARGED, 1_000), block(TO_BLOCK), free, Batch::Reset(vec![key(TO_FORGET)])];
    std::thread::scope(|scope| {
        for call in &calls {
            scope.spawn(move || {
                let refused = store.apply(call, When::Store).unwrap_err();
                assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused}");
            });
        }
    });
}

/// How many calls the server has refused because they came late.
fn refused(server: &RedisServer) -> u64 {
    let told = server.field(&["INFO", "errorstats"], "errorstat_LATE").unwrap_or_default();
    told.trim_start_matches("count=").trim().parse().unwrap_or_default()
}

#[test]
fn what_was_given_up_is_not_done_when_it_arrives_after_all() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = FaultProxy::start(([127, 0, 0, 1], server.port()).into()).unwrap();
    let url = format!("redis://{}", proxy.address());
    let store = connect_with(&url, RedisOptions::default()).unwrap();
    assert!(passes(&store, CHARGED).unwrap() && passes(&store, TO_FORGET).unwrap());
    store.apply(&block(TO_FREE), When::Store).unwrap();
    let before = all(&store);
    assert_eq!(before, [(999, false), (1_000, false), (1_000, true), (999, false)]);
    // Once it stands in the server's own buffer, once on the way there.
    server.signal("STOP");
    given_up(&store);
    server.signal("CONT");
    until("the server has seen all of it", || refused(&server) == 4);
    until("calls pass", || passes(&store, 9).is_ok());
    assert_eq!(all(&store), before);
    proxy.set(Fault::Silent);
    given_up(&store);
    proxy.set(Fault::None);
    until("the server has seen all of it", || refused(&server) == 8);
    until("calls pass", || passes(&store, 9).is_ok());
    assert_eq!(all(&store), before);
}

/// A cut line tells at once; that an act was not done is told when it cannot be done any more.
#[test]
fn an_act_whose_line_is_cut_is_refused_when_it_can_no_longer_be_done() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = FaultProxy::start(([127, 0, 0, 1], server.port()).into()).unwrap();
    let deadline = Duration::from_millis(700);
    let options = RedisOptions { deadline, ..RedisOptions::default() };
    let store = connect_with(&format!("redis://{}", proxy.address()), options).unwrap();
    proxy.set(Fault::Silent);
    let begun = std::time::Instant::now();
    let told = std::thread::scope(|scope| {
        let acting = scope.spawn(|| {
            store.apply(&block(TO_BLOCK), When::Store).unwrap_err();
            begun.elapsed()
        });
        let asking = scope.spawn(|| {
            store.apply(&check(CHARGED, 1_000), When::Store).unwrap_err();
            begun.elapsed()
        });
        std::thread::sleep(Duration::from_millis(100));
        proxy.set(Fault::Cut);
        (acting.join().unwrap(), asking.join().unwrap())
    });
    assert!(told.0 >= deadline && told.1 < deadline, "{told:?}");
}

/// Nobody is refused because the server's clock was set: the first refusal tells its time.
#[test]
fn a_clock_that_is_set_refuses_nobody() {
    let clock = FakeClockLibrary::build();
    let Some(server) = RedisServer::start_with_clock(&clock) else { return };
    let store = connect_with(&server.url(), RedisOptions::default()).unwrap();
    for ahead in [3_600, -3_600, 5, 0] {
        clock.set(ahead);
        assert!(passes(&store, CHARGED).unwrap(), "{ahead} s");
    }
    assert!(refused(&server) >= 1, "it noticed");
}

#[test]
fn a_lock_that_was_given_up_is_not_granted_later() {
    let Some(server) = RedisServer::start() else { return };
    let threads = Runtime::new().unwrap();
    let options = RedisOptions::default();
    let locks = threads.block_on(RedisLocks::connect(&server.url(), options)).unwrap();
    let ask = |lease| {
        let op = acquire("p", lease, Span::from_secs(600));
        threads.block_on(locks.ask("n", &op, When::Store))
    };
    server.signal("STOP");
    ask(1).unwrap_err();
    server.signal("CONT");
    until("the server has seen it", || refused(&server) == 1);
    let granted = |told| matches!(told, LockOutcome::Acquired(AcquireReply::Granted(_)));
    until("the name is given to who waits for it", || ask(2).is_ok_and(|it| granted(it.outcome)));
}
