//! F1 and F7: a server that loses its data, and the blocks that it had acknowledged.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use catraca::Check;
use catraca_testkit::redis::RedisServer;
use catraca_testkit::resp::RespValue;

use super::helpers::{Node, RECOVERS, pause};

#[test]
fn f1_an_acknowledged_block_survives_a_server_that_forgets_everything() {
    let Some(server) = RedisServer::start() else { return };
    let url = server.url();
    let node = Node::over(&url, 1);
    (0..300).for_each(|number| node.block(&address(number)));
    let server = RefCell::new(server);
    let killed = || server.borrow_mut().kill();
    let seen = node.outage(Duration::from_secs(1), killed, || server.borrow_mut().restart());
    seen.assert_bounds("F1 kill -9, back empty");
    // A new node knows only the blocks in the store.
    let fresh = Node::over(&url, 1);
    let free = (0..300).filter(|number| fresh.check("login", &address(*number)).allowed);
    assert_eq!(free.count(), 0, "no acknowledged block was lost");
}

#[test]
fn f1_a_node_alone_keeps_every_block_that_it_knows() {
    let Some(mut server) = RedisServer::start() else { return };
    let node = Node::over(&server.url(), 1);
    node.block("192.0.2.1");
    server.kill();
    for _ in 0..50 {
        let denied = node.check("login", "192.0.2.1");
        assert_eq!((denied.allowed, denied.reason.as_str()), (false, "blocked"));
    }
    assert_eq!(node.check("closed", "192.0.2.1").reason.as_str(), "unavailable");
}

/// F7: the server keeps running and its data is deleted.
#[test]
fn f7_after_flushall_every_block_is_told_again() {
    let Some(server) = RedisServer::start() else { return };
    let node = Node::over(&server.url(), 1);
    (0..300).for_each(|number| node.block(&address(number)));
    let flushed = Instant::now();
    assert!(!matches!(server.command(&["FLUSHALL"]), RespValue::Error(_)));
    let fresh = Node::over(&server.url(), 1);
    let is_blocked = |number: &u32| {
        let ip = address(*number);
        let peek = Check::new("login", [("ip", ip.as_str())]);
        let seen = fresh.runtime.block_on(fresh.app.peek(&peek)).unwrap();
        seen.reason.as_str() == "blocked"
    };
    while !(0..300).all(|number| is_blocked(&number)) {
        assert!(flushed.elapsed() < RECOVERS, "a block is still missing");
        pause(Duration::from_millis(20));
    }
    println!("F7 FLUSHALL: 300 blocks back after {:?}", flushed.elapsed());
}

fn address(number: u32) -> String {
    std::net::Ipv4Addr::from(0xC000_0200 + number).to_string()
}
