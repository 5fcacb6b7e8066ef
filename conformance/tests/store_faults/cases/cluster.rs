//! A Cluster of three primaries and three replicas. Keys of primaries without a fault must never be
//! degraded.

use std::time::Duration;

use catraca_testkit::fault_proxy::Fault;

use super::{AT_ONCE, LONG_OUTAGE, NOTICED, OUTAGE};
use crate::bounds::Bounds;
use crate::lock_load::NAMES;
use crate::run::{Case, run};
use crate::topology::ClusterTopology;

const TOPOLOGY: &str = "Cluster";

fn failover() -> Bounds {
    Bounds {
        exact_limits: 1,
        limits: 2,
        double_resource: NAMES,
        waits_grace: true,
        has_others: true,
        replaces: true,
        ..Bounds::default()
    }
}

/// A primary that does not answer for the node timeout, and then is replaced.
pub(super) fn lost_primary() -> Bounds {
    Bounds { degrades_for: Duration::from_secs(1), ..failover() }
}

/// The bounds of slots that move: no lease is lost, so no grant waits.
fn moved_slots() -> Bounds {
    Bounds { refuses: false, has_others: true, ..Bounds::default() }
}

#[test]
fn cluster_kill() {
    let case = Case {
        name: "cluster_kill",
        topology: TOPOLOGY,
        fault: "`kill -9` of a primary; it returns after the failover",
    };
    let kill = |topology: &mut ClusterTopology| {
        topology.struck_server().kill();
        topology.wait_for_failover();
    };
    run(case, ClusterTopology::start, lost_primary(), OUTAGE, kill, |t| {
        t.struck_server().restart()
    });
}

#[test]
fn cluster_stop() {
    let case = Case {
        name: "cluster_stop",
        topology: TOPOLOGY,
        fault: "`SIGSTOP` of a primary, `SIGCONT` after the failover",
    };
    let stop = |topology: &mut ClusterTopology| {
        topology.struck_server().signal("STOP");
        topology.wait_for_failover();
    };
    run(case, ClusterTopology::start, lost_primary(), OUTAGE, stop, |t| {
        t.struck_server().signal("CONT")
    });
}

#[test]
fn cluster_failover() {
    let case = Case { name: "cluster_failover", topology: TOPOLOGY, fault: "`CLUSTER FAILOVER`" };
    run(case, ClusterTopology::start, failover(), AT_ONCE, |t| t.fail_over(), |_| ());
}

/// Moved slots are no failover.
#[test]
fn cluster_reshard() {
    let case = Case {
        name: "cluster_reshard",
        topology: TOPOLOGY,
        fault: "every used slot of a primary is moved to another",
    };
    let bounds = Bounds { replaces: true, ..moved_slots() };
    run(case, ClusterTopology::start, bounds, AT_ONCE, |t| t.reshard(), |_| ());
}

/// As a reshard: keys that move may be degraded, and others not. Nodes that still know the primary
/// when it ends read the slot map again at once.
#[test]
fn cluster_primary() {
    let case = Case {
        name: "cluster_primary",
        topology: TOPOLOGY,
        fault: "a primary is added, gets every used slot of another, and is removed after 3 s",
    };
    let bounds = Bounds { recovers: Duration::from_secs(1), ..moved_slots() };
    run(case, ClusterTopology::start, bounds, OUTAGE, |t| t.add_primary(), |t| t.remove_primary());
}

#[test]
fn cluster_flush() {
    let case =
        Case { name: "cluster_flush", topology: TOPOLOGY, fault: "`FLUSHALL` on one primary" };
    let bounds = Bounds { forgets: true, loses_blocks: true, replaces: false, ..failover() };
    let flush = |t: &mut ClusterTopology| drop(t.struck_server().command(&["FLUSHALL"]));
    run(case, ClusterTopology::start, bounds, AT_ONCE, flush, |_| ());
}

/// The cluster itself is whole, and has no failover.
#[test]
fn cluster_partition() {
    let case = Case {
        name: "cluster_partition",
        topology: TOPOLOGY,
        fault: "all nodes are cut off from one primary without a word for 3 s",
    };
    let cut = |topology: &mut ClusterTopology| topology.set_wire(Fault::Silent);
    let bounds = Bounds { degrades_for: NOTICED, has_others: true, ..Bounds::default() };
    let start = ClusterTopology::start_behind_proxies;
    run(case, start, bounds, OUTAGE, cut, |t| t.set_wire(Fault::None));
}

/// The cluster itself is whole, and the other nodes reach it.
#[test]
fn cluster_node_partition() {
    let case = Case {
        name: "cluster_node_partition",
        topology: TOPOLOGY,
        fault: "one of three nodes is cut off from all servers without a word for 8 s",
    };
    let bounds = Bounds { degrades_for: NOTICED, cut_off_node: Some(1), ..Bounds::default() };
    let start = ClusterTopology::start_divisible;
    let cut = |topology: &mut ClusterTopology| topology.set_apart(Fault::Silent);
    run(case, start, bounds, LONG_OUTAGE, cut, |t| t.set_apart(Fault::None));
}
