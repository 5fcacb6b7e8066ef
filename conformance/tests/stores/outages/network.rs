//! F2 and F3: a stopped server, and network faults.

use std::time::{Duration, Instant};

use catraca_testkit::fault_proxy::{Fault, FaultProxy};
use catraca_testkit::redis::RedisServer;

use super::helpers::{Node, RECOVERS, is_deep, pause};

fn length() -> Duration {
    if is_deep() { Duration::from_secs(30) } else { Duration::from_secs(2) }
}

/// A proxy to the server, and its URL.
fn proxied(server: &RedisServer) -> (FaultProxy, String) {
    let proxy = FaultProxy::start(([127, 0, 0, 1], server.port()).into()).unwrap();
    let url = format!("redis://{}", proxy.address());
    (proxy, url)
}

#[test]
fn f2_a_stopped_server_costs_nobody_more_than_the_deadline() {
    let Some(server) = RedisServer::start() else { return };
    let (proxy, url) = proxied(&server);
    let node = Node::over(&url, 1);
    let before = proxy.open();
    let seen = node.outage(length(), || server.signal("STOP"), || server.signal("CONT"));
    seen.assert_bounds("F2 SIGSTOP");
    assert!(proxy.open() <= before + 1, "connections: {} and {before}", proxy.open());
}

#[test]
fn f3_a_wire_may_fail_in_any_way() {
    let Some(server) = RedisServer::start() else { return };
    let faults = [
        ("cut", Fault::Cut),
        ("half-open", Fault::Silent),
        ("200 ms late", Fault::Delay(Duration::from_millis(200))),
        ("a byte a second", Fault::Trickle(Duration::from_secs(1))),
    ];
    for (name, fault) in faults {
        let (proxy, url) = proxied(&server);
        let node = Node::over(&url, 1);
        let seen = node.outage(length(), || proxy.set(fault), || proxy.set(Fault::None));
        seen.assert_bounds(&format!("F3 {name}"));
    }
}

#[test]
fn f3_cuts_leak_no_connection() {
    let Some(server) = RedisServer::start() else { return };
    let (proxy, url) = proxied(&server);
    let node = Node::over(&url, 1);
    let before = proxy.open();
    let rounds = if is_deep() { 100 } else { 20 };
    for round in 0..rounds {
        proxy.set(if round % 2 == 0 { Fault::Cut } else { Fault::Silent });
        while !node.check("local", "192.0.2.1").degraded {}
        proxy.set(Fault::None);
        let mended = Instant::now();
        while node.check("local", "192.0.2.1").degraded {
            assert!(mended.elapsed() < RECOVERS, "round {round}");
            pause(Duration::from_millis(5));
        }
    }
    println!(
        "F3 {rounds} cuts: {} connections made, {} open",
        proxy.connection_count(),
        proxy.open()
    );
    assert!(proxy.connection_count() >= rounds / 2, "nothing was cut");
    assert!(proxy.open() <= before + 1, "{} and {before}", proxy.open());
}
