//! F5: a slot of a cluster on its way to another server, while callers go on.

use std::time::{Duration, Instant};

use catraca::Check;
use catraca_testkit::redis::RedisCluster;
use catraca_testkit::resp::RespValue;

use crate::helpers::{DEADLINE, NOISE, Node, RECOVERS, pause};

const MOVES: &str = "moves";
const STAYS: &str = "stays";
const PRIMARIES: usize = 3;

/// One check in a namespace: whether the store decided it, and how long it took.
fn check(node: &Node, namespace: &str) -> (bool, Duration) {
    let mut check = Check::new("count", [("ip", "192.0.2.1")]);
    check.namespace = namespace;
    let begun = Instant::now();
    let decision = node.runtime.block_on(node.engine.check(&check)).unwrap();
    assert!(decision.allowed, "{decision:?}");
    (!decision.degraded, begun.elapsed())
}

/// Which primary has the only cell that there is, and in which slot.
fn place(cluster: &RedisCluster) -> (usize, String) {
    for server in 0..PRIMARIES {
        let mut client = cluster.servers[server].connect();
        let Ok(RespValue::Array(keys)) = client.call(&[b"KEYS", b"catraca:{*}b*"]) else { panic!() };
        if let Some(RespValue::Bytes(key)) = keys.first() {
            let Ok(RespValue::Int(slot)) = client.call(&[b"CLUSTER", b"KEYSLOT", key]) else {
                panic!()
            };
            return (server, slot.to_string());
        }
    }
    panic!("nobody has it");
}

/// While it moves, its keys are decided here and say so; nothing else notices, nothing is lost, and
/// nobody waits.
#[test]
fn f5_a_slot_on_its_way_degrades_its_own_keys_alone_and_loses_nothing() {
    let Some(cluster) = RedisCluster::start() else { return };
    let node = Node::over(&cluster.url(), 1);
    assert!(check(&node, MOVES).0);
    let (from, slot) = place(&cluster);
    let to = (from + 1) % PRIMARIES;
    let (mut sure, mut all, mut longest) = (1, 1, Duration::ZERO);
    let mut others = 0;
    let mut some = || {
        for _ in 0..20 {
            let (decided, took) = check(&node, MOVES);
            (sure, all, longest) = (sure + i64::from(decided), all + 1, longest.max(took));
            others += i64::from(!check(&node, STAYS).0);
        }
    };
    some();
    cluster.begin_move(&slot, from, to);
    some();
    cluster.move_keys(&slot, from, to);
    some();
    cluster.end_move(&slot, to);
    let moved = Instant::now();
    while !check(&node, MOVES).0 {
        all += 1;
        assert!(moved.elapsed() < RECOVERS, "{:?}", node.engine.stats());
        pause(Duration::from_millis(5));
    }
    (sure, all) = (sure + 1, all + 1);
    println!("F5 {all} calls, {sure} by the store, whole again after {:?}", moved.elapsed());
    let mut peek = Check::new("count", [("ip", "192.0.2.1")]);
    peek.namespace = MOVES;
    let left = node.runtime.block_on(node.engine.peek(&peek)).unwrap();
    let used = 1_000_000 - left.remaining.unwrap_or_default();
    assert!(!left.degraded && (sure..=all).contains(&used), "{used} of {sure} to {all}");
    assert_eq!(others, 0, "keys of other slots were not disturbed");
    assert!(longest <= DEADLINE + NOISE, "{longest:?}");
}
