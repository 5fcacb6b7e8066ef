//! F16: nodes with different clocks. Nodes share only the store, so one process can hold several.

use std::time::SystemTime;

use catraca::{Clock, SystemClock, Time};
use catraca_testkit::redis::RedisServer;

use super::helpers::Node;

/// The offset of each node's clock, in seconds.
const AHEAD: [i64; 5] = [0, 5, -5, 61, -61];
const LIMIT: usize = 5;

/// The system clock with an offset in seconds.
struct SkewedClock(SystemClock, i64);

impl Clock for SkewedClock {
    fn system_time(&self) -> SystemTime {
        Time::from_micros(self.0.now().micros() + self.1 * 1_000_000).into()
    }
}

#[test]
fn f16_nodes_whose_clocks_are_apart_give_the_same_answers() {
    let Some(server) = RedisServer::start() else { return };
    let skewed = |ahead| SkewedClock(SystemClock::new(), ahead);
    let nodes = AHEAD.map(|ahead| Node::at(&server.url(), skewed(ahead)));
    nodes[3].block("192.0.2.2");
    for (node, ahead) in nodes.iter().zip(AHEAD) {
        let offset = node.stats().clock_offset.expect("a heartbeat has run") / 1_000_000;
        assert!((offset + ahead).abs() <= 1, "{ahead} s ahead is reported as {offset} s");
    }
    let mut admitted = 0;
    for round in 0..4 {
        for (node, ahead) in nodes.iter().zip(AHEAD) {
            let seen = node.check("login", "192.0.2.1");
            assert!(!seen.degraded, "{:?}", node.stats());
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
