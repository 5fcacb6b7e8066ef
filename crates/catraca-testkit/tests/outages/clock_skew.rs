//! F16: nodes whose clocks disagree. Each is as good as a process: nodes share the store alone.

use catraca::Time;
use catraca::{Clock, SystemClock};
use catraca_testkit::redis::RedisServer;

use crate::helpers::Node;

/// How many seconds each node's clock is ahead.
const AHEAD: [i64; 5] = [0, 5, -5, 61, -61];
const LIMIT: usize = 5;

/// A clock that goes right and was set wrong.
struct SetWrong(SystemClock, i64);

impl Clock for SetWrong {
    fn now(&self) -> Time {
        Time::from_micros(self.0.now().micros() + self.1 * 1_000_000)
    }
}

#[test]
fn f16_nodes_whose_clocks_are_apart_give_the_same_answers() {
    let Some(server) = RedisServer::start() else { return };
    let set_wrong = |ahead| SetWrong(SystemClock::new(), ahead);
    let nodes = AHEAD.map(|ahead| Node::at(&server.url(), set_wrong(ahead)));
    nodes[3].block("192.0.2.2");
    for (node, ahead) in nodes.iter().zip(AHEAD) {
        let told = node.engine.stats().clock_offset.expect("a beat was made") / 1_000_000;
        assert!((told + ahead).abs() <= 1, "{ahead} s ahead is told as {told} s");
    }
    let mut admitted = 0;
    for round in 0..4 {
        for (node, ahead) in nodes.iter().zip(AHEAD) {
            let seen = node.check("login", "192.0.2.1");
            assert!(!seen.degraded, "{:?}", node.engine.stats());
            admitted += usize::from(seen.allowed);
            let wait = seen.retry_after.map_or(0, |wait| wait.micros() / 1_000_000);
            let honest = if seen.allowed { wait == 0 } else { (590..=600).contains(&wait) };
            assert!(honest, "round {round}, {ahead} s ahead: a wait of {wait} s");
            let blocked = node.check("login", "192.0.2.2");
            assert_eq!(blocked.reason.as_str(), "blocked", "{ahead} s ahead");
        }
    }
    assert_eq!(admitted, LIMIT, "exactly the limit over all nodes");
}
