//! F4 and F5: failovers under Sentinels, and slots that move in a cluster.

use std::time::{Duration, Instant};

use catraca_testkit::redis::{RedisCluster, RedisSentinels};

use crate::kit::{Node, is_deep, pause};

/// What a failover may take until the new primary is asked: the Sentinels' own vote and our beat.
const FAILS_OVER: Duration = Duration::from_secs(10);

/// The loss is measured: admissions beyond the limit, over all rounds.
#[test]
fn f4_a_failover_loses_at_most_one_limit_and_no_acknowledged_block() {
    let rounds = if is_deep() { 20 } else { 2 };
    let (mut lost, mut worst) = (0, Duration::ZERO);
    for round in 0..rounds {
        let Some(group) = RedisSentinels::start() else { return };
        let node = Node::over(&group.url(), 1);
        node.block("192.0.2.1");
        let ip = "192.0.2.2";
        let before = (0..3).filter(|_| node.check("login", ip).allowed).count();
        let first = group.primary();
        let begun = Instant::now();
        // Half of them with the old primary alive, half with it killed.
        let mut group = group;
        if round % 2 == 0 {
            group.fail_over();
        } else {
            group.servers[0].kill();
        }
        let moved = || group.primary() != first;
        while !moved() || node.check("local", "192.0.2.3").degraded {
            assert!(begun.elapsed() < FAILS_OVER, "{:?}", node.engine.stats());
            pause(Duration::from_millis(20));
        }
        worst = worst.max(begun.elapsed());
        assert_eq!(node.check("login", "192.0.2.1").reason.as_str(), "blocked", "round {round}");
        let after = (0..10).filter(|_| node.check("login", ip).allowed).count();
        lost += (before + after).saturating_sub(5);
        assert!(before + after <= 10, "more than one limit: {before} and {after}");
    }
    println!("F4 {rounds} failovers: {lost} admissions beyond the limit, back within {worst:?}");
}

#[test]
fn f5_a_slot_that_moves_costs_no_caller_an_error() {
    let Some(cluster) = RedisCluster::start() else { return };
    let node = Node::over(&cluster.url(), 1);
    let seen = (0..200).map(|number| {
        let ip = std::net::Ipv4Addr::from(0x0A00_0000_u32 + number).to_string();
        node.check("local", &ip)
    });
    assert!(seen.map(|decision| decision.degraded).all(|degraded| !degraded));
    cluster.move_slots(|| {
        node.check("local", "192.0.2.1");
    });
    let begun = Instant::now();
    while node.check("local", "192.0.2.2").degraded {
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", node.engine.stats());
    }
    let crossed = node.engine.stats().trouble.unwrap_or_default();
    assert!(!crossed.contains("CROSSSLOT"), "{crossed}");
    println!("F5 slots moved: whole again after {:?}", begun.elapsed());
}
