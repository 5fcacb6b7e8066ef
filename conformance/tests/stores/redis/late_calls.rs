//! Late calls: a call that reaches the server after its caller's deadline changes nothing.

use std::time::Duration;

use catraca::locks::LockStore;
use catraca::redis::{RedisLocks, RedisOptions, RedisStore};
use catraca::store::{Store, StoreError, When};
use catraca_core::batch::{Batch, CheckBatch, Reply, RowReply};
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::Penalty;
use catraca_core::lock::LockOutcome;
use catraca_core::lock::reply::AcquireReply;
use catraca_core::time::Span;
use catraca_testkit::blocking_store::BlockingStore;
use catraca_testkit::fake_clock::FakeClockLibrary;
use catraca_testkit::fault_proxy::{Fault, FaultProxy};
use catraca_testkit::redis::{RedisServer, until};
use tokio::runtime::Runtime;

use super::helpers::{check, connect_with, passes};
use super::locks::acquire;

const CHARGED: u8 = 1;
const TO_BLOCK: u8 = 2;
const TO_FREE: u8 = 3;
const TO_FORGET: u8 = 4;

fn key(name: u8) -> Key {
    Key::from_bytes([name; 16])
}

fn block(name: u8) -> Batch {
    let origin = Origin::Operator;
    let note = BlockNote::default();
    let penalty = Penalty::without_escalation(Span::from_secs(600));
    Batch::Block(vec![(key(name), BlockProposal::new(penalty, origin, false, note))])
}

/// The state of a key, read with a peek.
fn peek(store: &impl Store, name: u8) -> RowReply {
    let Batch::Check(asked) = check(name, 1_000) else { panic!("not a check") };
    let peek = Batch::Check(CheckBatch { peek: true, ..asked });
    match store.apply(&peek, When::Store).unwrap() {
        Reply::Check(reply) => reply.rows[0].clone(),
        other => panic!("not the reply of a check: {other:?}"),
    }
}

/// The state of all keys: the free units, and whether the key is blocked.
fn all(store: &impl Store) -> [(i64, bool); 4] {
    [CHARGED, TO_BLOCK, TO_FREE, TO_FORGET].map(|name| {
        let row = peek(store, name);
        (row.free, row.block.is_some())
    })
}

/// Sends four concurrent calls to a server that does not answer; each one times out.
fn time_out_all(store: &BlockingStore<RedisStore>) {
    let free = Batch::Unblock(vec![key(TO_FREE).into()]);
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

/// The number of calls that the script refused because they were late.
fn refused(server: &RedisServer) -> u64 {
    let stats = server.field(&["INFO", "errorstats"], "errorstat_LATE").unwrap_or_default();
    stats.trim_start_matches("count=").trim().parse().unwrap_or_default()
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
    // First the calls wait in the server's receive buffer, then in the proxy.
    server.signal("STOP");
    time_out_all(&store);
    server.signal("CONT");
    until("the server has seen all of it", || refused(&server) == 4);
    until("calls pass", || passes(&store, 9).is_ok());
    assert_eq!(all(&store), before);
    proxy.set(Fault::Silent);
    time_out_all(&store);
    proxy.set(Fault::None);
    until("the server has seen all of it", || refused(&server) == 8);
    until("calls pass", || passes(&store, 9).is_ok());
    assert_eq!(all(&store), before);
}

/// When the connection is closed, a check fails at once. An operator's call fails only after its
/// deadline, when the server can no longer execute it: its error must mean "not done".
#[test]
fn an_act_whose_line_is_cut_is_refused_when_it_can_no_longer_be_done() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = FaultProxy::start(([127, 0, 0, 1], server.port()).into()).unwrap();
    let deadline = Duration::from_millis(700);
    let options = RedisOptions { deadline, ..RedisOptions::default() };
    let store = connect_with(&format!("redis://{}", proxy.address()), options).unwrap();
    proxy.set(Fault::Silent);
    let start = std::time::Instant::now();
    let elapsed = std::thread::scope(|scope| {
        let acting = scope.spawn(|| {
            store.apply(&block(TO_BLOCK), When::Store).unwrap_err();
            start.elapsed()
        });
        let asking = scope.spawn(|| {
            store.apply(&check(CHARGED, 1_000), When::Store).unwrap_err();
            start.elapsed()
        });
        std::thread::sleep(Duration::from_millis(100));
        proxy.set(Fault::Cut);
        (acting.join().unwrap(), asking.join().unwrap())
    });
    assert!(elapsed.0 >= deadline && elapsed.1 < deadline, "{elapsed:?}");
}

/// A changed server clock refuses no caller: the script's first refusal carries its time, and the
/// store repeats the call.
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
    let granted = |outcome| matches!(outcome, LockOutcome::Acquired(AcquireReply::Granted(_)));
    until("the name is given to who waits for it", || ask(2).is_ok_and(|it| granted(it.outcome)));
}
