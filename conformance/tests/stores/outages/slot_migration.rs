//! F5: a slot of a cluster that migrates to another server while calls continue.

use std::time::{Duration, Instant};

use catraca::Check;
use catraca_testkit::pause_watch::PauseWatch;
use catraca_testkit::redis::RedisCluster;
use catraca_testkit::resp::RespValue;

use super::helpers::{DEADLINE, NOISE, Node, RECOVERS, pause};

const MOVES: &str = "moves";
const STAYS: &str = "stays";
const PRIMARIES: usize = 3;

/// One check in a namespace: whether the store decided it, and how long it took.
fn check(node: &Node, namespace: &str) -> (bool, Duration) {
    let mut check = Check::new("count", [("ip", "192.0.2.1")]);
    check.namespace = namespace;
    let start = Instant::now();
    let decision = node.runtime.block_on(node.app.check(&check)).unwrap();
    assert!(decision.allowed, "{decision:?}");
    (!decision.degraded, start.elapsed())
}

/// The primary that holds the only cell, and the cell's slot.
fn locate_cell(cluster: &RedisCluster) -> (usize, String) {
    for server in 0..PRIMARIES {
        let mut client = cluster.servers[server].connect();
        let Ok(RespValue::Array(keys)) = client.call(&[b"KEYS", b"catraca:{*}b*"]) else {
            panic!()
        };
        if let Some(RespValue::Bytes(key)) = keys.first() {
            let Ok(RespValue::Int(slot)) = client.call(&[b"CLUSTER", b"KEYSLOT", key]) else {
                panic!()
            };
            return (server, slot.to_string());
        }
    }
    panic!("no primary has the cell");
}

/// While the slot migrates, checks of its keys are decided locally and marked as degraded; other
/// slots are not affected, no charge is lost, and no call waits.
#[test]
fn f5_a_slot_on_its_way_degrades_its_own_keys_alone_and_loses_nothing() {
    let Some(cluster) = RedisCluster::start() else { return };
    let node = Node::over(&cluster.url(), 1);
    assert!(check(&node, MOVES).0);
    let (from, slot) = locate_cell(&cluster);
    let to = (from + 1) % PRIMARIES;
    let mut by_store = 1;
    let mut all = 1;
    let machine = PauseWatch::start();
    let mut longest = Duration::ZERO;
    let mut others = 0;
    let mut call_both = || {
        for _ in 0..20 {
            let (decided, took) = check(&node, MOVES);
            by_store += i64::from(decided);
            all += 1;
            longest = longest.max(took);
            others += i64::from(!check(&node, STAYS).0);
        }
    };
    call_both();
    cluster.begin_move(&slot, from, to);
    call_both();
    cluster.move_keys(&slot, from, to);
    call_both();
    cluster.end_move(&slot, to);
    let moved = Instant::now();
    while !check(&node, MOVES).0 {
        all += 1;
        assert!(moved.elapsed() < RECOVERS, "{:?}", node.stats());
        pause(Duration::from_millis(5));
    }
    by_store += 1;
    all += 1;
    println!("F5 {all} calls, {by_store} by the store, recovered after {:?}", moved.elapsed());
    let mut peek = Check::new("count", [("ip", "192.0.2.1")]);
    peek.namespace = MOVES;
    let left = node.runtime.block_on(node.app.peek(&peek)).unwrap();
    let used = 1_000_000 - left.remaining.unwrap_or_default();
    assert!(!left.degraded && (by_store..=all).contains(&used), "{used} of {by_store} to {all}");
    assert_eq!(others, 0, "keys of other slots were not disturbed");
    assert!(longest <= DEADLINE + NOISE + machine.added_to_a_call(), "{longest:?}");
}
