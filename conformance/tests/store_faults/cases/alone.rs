//! Redis alone: the records are a file of each node, so nodes have no other way to each other.

use catraca_testkit::fault_proxy::Fault;

use super::{AT_ONCE, NOTICED, OUTAGE};
use crate::bounds::Bounds;
use crate::lock_load::NAMES;
use crate::run::{Case, run};
use crate::topology::SingleRedis;

const TOPOLOGY: &str = "Redis alone";

fn start() -> Option<SingleRedis> {
    SingleRedis::start_alone(&[])
}

/// Acts of one node reach the others when Redis is back.
fn outage() -> Bounds {
    Bounds { degrades_for: NOTICED, acts_wait: true, ..Bounds::default() }
}

/// Redis without persistence gives one limit more.
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

#[test]
fn alone_kill() {
    let case = Case {
        name: "alone_kill",
        topology: TOPOLOGY,
        fault: "`kill -9`, restart without persistence after 3 s",
    };
    let bounds = Bounds { degrades_for: NOTICED, acts_wait: true, ..forgetting() };
    run(case, start, bounds, OUTAGE, |r| r.server.kill(), |r| r.server.restart());
}

#[test]
fn alone_flush() {
    let case = Case { name: "alone_flush", topology: TOPOLOGY, fault: "`FLUSHALL`" };
    let bounds = Bounds { loses_blocks: true, ..forgetting() };
    let flush = |redis: &mut SingleRedis| drop(redis.server.command(&["FLUSHALL"]));
    run(case, start, bounds, AT_ONCE, flush, |_| ());
}

#[test]
fn alone_partition() {
    let case = Case {
        name: "alone_partition",
        topology: TOPOLOGY,
        fault: "one of three nodes is cut off without a word for 3 s",
    };
    let cut = |redis: &mut SingleRedis| redis.set_wire(1, Fault::Silent);
    run(case, start, outage(), OUTAGE, cut, |r| r.set_wire(1, Fault::None));
}
