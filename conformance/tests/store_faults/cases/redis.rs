//! One Redis.

use std::time::Duration;

use catraca_testkit::fault_proxy::Fault;

use super::{AT_ONCE, LONG_OUTAGE, NOTICED, OUTAGE};
use crate::bounds::Bounds;
use crate::lock_load::NAMES;
use crate::run::{Case, run, run_on_nodes};
use crate::topology::SingleRedis;

const TOPOLOGY: &str = "one Redis";

/// A Redis that loses everything gives one limit more.
fn forgetting() -> Bounds {
    Bounds {
        exact_limits: 1,
        limits: 2,
        forgets: true,
        double_resource: NAMES,
        waits_grace: true,
        ..Bounds::default()
    }
}

/// The bounds of a fault that callers of the store do not notice.
fn undisturbed() -> Bounds {
    Bounds {
        limits: 0,
        degrades: false,
        refuses: false,
        recovers: Duration::ZERO,
        ..Bounds::default()
    }
}

/// The bounds of a Redis that does not answer for 3 s and loses nothing.
fn outage() -> Bounds {
    Bounds { degrades_for: NOTICED, ..Bounds::default() }
}

#[test]
fn redis_kill() {
    let redis = || SingleRedis::start(&[]);
    let case = Case {
        name: "redis_kill",
        topology: TOPOLOGY,
        fault: "`kill -9`, restart without persistence after 3 s",
    };
    let bounds = Bounds { degrades_for: NOTICED, ..forgetting() };
    run(case, redis, bounds, OUTAGE, |r| r.server.kill(), |r| r.server.restart());
}

#[test]
fn redis_aof_kill() {
    let always = ["--appendonly", "yes", "--appendfsync", "always"];
    let redis = || SingleRedis::start(&always);
    let case = Case {
        name: "redis_aof_kill",
        topology: TOPOLOGY,
        fault: "`kill -9`, restart with `appendfsync always` after 3 s",
    };
    let bounds = Bounds { waits_grace: true, ..outage() };
    run(case, redis, bounds, OUTAGE, |r| r.server.kill(), |r| r.server.restart());
}

#[test]
fn redis_stop() {
    let redis = || SingleRedis::start(&[]);
    let case =
        Case { name: "redis_stop", topology: TOPOLOGY, fault: "`SIGSTOP`, `SIGCONT` after 3 s" };
    let stop = |redis: &mut SingleRedis| redis.server.signal("STOP");
    run(case, redis, outage(), OUTAGE, stop, |r| r.server.signal("CONT"));
}

#[test]
fn redis_flush() {
    let redis = || SingleRedis::start(&[]);
    let case = Case { name: "redis_flush", topology: TOPOLOGY, fault: "`FLUSHALL`" };
    let flush = |redis: &mut SingleRedis| drop(redis.server.command(&["FLUSHALL"]));
    let bounds = Bounds { loses_blocks: true, ..forgetting() };
    run(case, redis, bounds, AT_ONCE, flush, |_| ());
}

/// One node is cut off, and the other two are not.
#[test]
fn redis_partition() {
    let redis = || SingleRedis::start(&[]);
    let case = Case {
        name: "redis_partition",
        topology: TOPOLOGY,
        fault: "one of three nodes is cut off without a word for 8 s",
    };
    let cut = |redis: &mut SingleRedis| redis.set_wire(1, Fault::Silent);
    let bounds = Bounds { cut_off_node: Some(1), ..outage() };
    run(case, redis, bounds, LONG_OUTAGE, cut, |r| r.set_wire(1, Fault::None));
}

/// A node that dies has no part in what the others count.
#[test]
fn redis_node_kill() {
    const DEAD: usize = 1;
    let redis = || SingleRedis::start(&[]);
    let case = Case {
        name: "redis_node_kill",
        topology: TOPOLOGY,
        fault: "`kill -9` of one of three nodes of Catraca, which returns after 3 s",
    };
    let bounds = Bounds { dead_node: Some(DEAD), ..undisturbed() };
    run_on_nodes(case, redis, bounds, OUTAGE, |n| n[DEAD].kill(), |n| n[DEAD].restart());
}
