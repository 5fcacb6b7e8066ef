//! Redis alone, also under Sentinels and as a Cluster: the records are a file of each node, so
//! nodes have no other way to each other.

use catraca_testkit::fault_proxy::Fault;

use super::{AT_ONCE, NOTICED, OUTAGE, cluster, sentinel};
use crate::bounds::Bounds;
use crate::lock_load::NAMES;
use crate::run::{Case, run};
use crate::topology::{ClusterTopology, SentinelTopology, SingleRedis};

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

#[test]
fn alone_sentinel_failover() {
    let case = Case {
        name: "alone_sentinel_failover",
        topology: TOPOLOGY,
        fault: "under Sentinels: `SENTINEL FAILOVER`",
    };
    let bounds = Bounds { acts_wait: true, ..sentinel::failover() };
    run(case, SentinelTopology::start_alone, bounds, AT_ONCE, |t| t.fail_over(), |_| ());
}

#[test]
fn alone_cluster_kill() {
    let case = Case {
        name: "alone_cluster_kill",
        topology: TOPOLOGY,
        fault: "as a Cluster: `kill -9` of a primary; it returns after the failover",
    };
    let bounds = Bounds { acts_wait: true, ..cluster::lost_primary() };
    let kill = |topology: &mut ClusterTopology| {
        topology.struck_server().kill();
        topology.wait_for_failover();
    };
    run(case, ClusterTopology::start_alone, bounds, OUTAGE, kill, |t| t.struck_server().restart());
}
