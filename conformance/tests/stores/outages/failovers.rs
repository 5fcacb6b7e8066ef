//! F4: failovers under Sentinels, and the charges that they lose.

use std::time::{Duration, Instant};

use catraca_testkit::redis::RedisSentinels;

use super::helpers::{Node, is_deep, pause};

/// The maximum time until the new primary is used: the Sentinels notice the loss, they vote, the
/// other replica follows the new primary, and a node sends a heartbeat.
const FAILS_OVER: Duration = Duration::from_secs(10);

/// The loss is the number of admissions beyond the limit, over all rounds.
#[test]
fn f4_a_failover_loses_at_most_one_limit_and_no_acknowledged_block() {
    let rounds = if is_deep() { 20 } else { 2 };
    let mut lost = 0;
    let mut worst = Duration::ZERO;
    for round in 0..rounds {
        let Some(group) = RedisSentinels::start() else { return };
        let node = Node::over(&group.url(), 1);
        node.block("192.0.2.1");
        let ip = "192.0.2.2";
        let before = (0..3).filter(|_| node.check("login", ip).allowed).count();
        let first = group.primary();
        let start = Instant::now();
        // In half of the rounds the old primary stays up, in the others it is killed.
        let mut group = group;
        if round % 2 == 0 {
            group.fail_over();
        } else {
            group.servers[0].kill();
        }
        let moved = || group.primary() != first;
        while !moved() || node.check("local", "192.0.2.3").degraded {
            assert!(start.elapsed() < FAILS_OVER, "{:?}", node.stats());
            pause(Duration::from_millis(20));
        }
        worst = worst.max(start.elapsed());
        assert_eq!(node.check("login", "192.0.2.1").reason.as_str(), "blocked", "round {round}");
        let after = (0..10).filter(|_| node.check("login", ip).allowed).count();
        lost += (before + after).saturating_sub(5);
        assert!(before + after <= 10, "more than one limit: {before} and {after}");
    }
    println!("F4 {rounds} failovers: {lost} admissions beyond the limit, back within {worst:?}");
}
