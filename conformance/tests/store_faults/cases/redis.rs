//! One Redis.

use catraca_testkit::fault_proxy::Fault;

use super::{AT_ONCE, OUTAGE};
use crate::bounds::Bounds;
use crate::lock_load::NAMES;
use crate::run::{Case, is_wanted, run};
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

fn start(settings: &[&str]) -> Option<SingleRedis> {
    if !is_wanted() {
        return None;
    }
    SingleRedis::start(settings)
}

#[test]
fn redis_kill() {
    let Some(redis) = start(&[]) else { return };
    let case = Case {
        name: "redis_kill",
        topology: TOPOLOGY,
        fault: "`kill -9`, restart without persistence after 3 s",
    };
    run(case, redis, forgetting(), OUTAGE, |r| r.server.kill(), |r| r.server.restart());
}

#[test]
fn redis_aof_kill() {
    let always = ["--appendonly", "yes", "--appendfsync", "always"];
    let Some(redis) = start(&always) else { return };
    let case = Case {
        name: "redis_aof_kill",
        topology: TOPOLOGY,
        fault: "`kill -9`, restart with `appendfsync always` after 3 s",
    };
    let bounds = Bounds { waits_grace: true, ..Bounds::default() };
    run(case, redis, bounds, OUTAGE, |r| r.server.kill(), |r| r.server.restart());
}

#[test]
fn redis_stop() {
    let Some(redis) = start(&[]) else { return };
    let case =
        Case { name: "redis_stop", topology: TOPOLOGY, fault: "`SIGSTOP`, `SIGCONT` after 3 s" };
    let stop = |redis: &mut SingleRedis| redis.server.signal("STOP");
    run(case, redis, Bounds::default(), OUTAGE, stop, |r| r.server.signal("CONT"));
}

#[test]
fn redis_flush() {
    let Some(redis) = start(&[]) else { return };
    let case = Case { name: "redis_flush", topology: TOPOLOGY, fault: "`FLUSHALL`" };
    let flush = |redis: &mut SingleRedis| drop(redis.server.command(&["FLUSHALL"]));
    let bounds = Bounds { loses_blocks: true, ..forgetting() };
    run(case, redis, bounds, AT_ONCE, flush, |_| ());
}

/// One node is cut off, and the other two are not.
#[test]
fn redis_partition() {
    let Some(redis) = start(&[]) else { return };
    let case = Case {
        name: "redis_partition",
        topology: TOPOLOGY,
        fault: "one of three nodes is cut off without a word for 3 s",
    };
    let cut = |redis: &mut SingleRedis| redis.set_wire(1, Fault::Silent);
    run(case, redis, Bounds::default(), OUTAGE, cut, |r| r.set_wire(1, Fault::None));
}
