//! A Cluster of three primaries and three replicas. Keys of primaries without a fault must never be
//! degraded.

use std::time::Duration;

use catraca_testkit::fault_proxy::Fault;

use super::{AT_ONCE, OUTAGE};
use crate::bounds::Bounds;
use crate::lock_load::NAMES;
use crate::run::{Case, is_wanted, run};
use crate::topology::ClusterTopology;

const TOPOLOGY: &str = "Cluster";

fn start() -> Option<ClusterTopology> {
    if !is_wanted() {
        return None;
    }
    ClusterTopology::start()
}

fn failover() -> Bounds {
    Bounds {
        exact_limits: 1,
        limits: 2,
        double_resource: NAMES,
        waits_grace: true,
        ..Bounds::default()
    }
}

#[test]
fn cluster_kill() {
    let Some(cluster) = start() else { return };
    let case = Case {
        name: "cluster_kill",
        topology: TOPOLOGY,
        fault: "`kill -9` of a primary; it returns after the failover",
    };
    let kill = |topology: &mut ClusterTopology| {
        topology.struck_server().kill();
        topology.wait_for_failover();
    };
    run(case, cluster, failover(), OUTAGE, kill, |t| t.struck_server().restart());
}

#[test]
fn cluster_stop() {
    let Some(cluster) = start() else { return };
    let case = Case {
        name: "cluster_stop",
        topology: TOPOLOGY,
        fault: "`SIGSTOP` of a primary, `SIGCONT` after the failover",
    };
    let stop = |topology: &mut ClusterTopology| {
        topology.struck_server().signal("STOP");
        topology.wait_for_failover();
    };
    run(case, cluster, failover(), OUTAGE, stop, |t| t.struck_server().signal("CONT"));
}

#[test]
fn cluster_failover() {
    let Some(cluster) = start() else { return };
    let case = Case { name: "cluster_failover", topology: TOPOLOGY, fault: "`CLUSTER FAILOVER`" };
    run(case, cluster, failover(), AT_ONCE, |t| t.fail_over(), |_| ());
}

/// Moved slots are no failover: no lease is lost, so no grant waits.
#[test]
fn cluster_reshard() {
    let Some(cluster) = start() else { return };
    let case = Case {
        name: "cluster_reshard",
        topology: TOPOLOGY,
        fault: "every used slot of a primary is moved to another",
    };
    let bounds = Bounds { refuses: false, ..Bounds::default() };
    run(case, cluster, bounds, AT_ONCE, |t| t.reshard(), |_| ());
}

#[test]
fn cluster_primary() {
    let Some(cluster) = start() else { return };
    let case = Case {
        name: "cluster_primary",
        topology: TOPOLOGY,
        fault: "a primary is added with a slot, and removed after 3 s",
    };
    let bounds = Bounds {
        limits: 0,
        degrades: false,
        refuses: false,
        recovers: Duration::ZERO,
        ..Bounds::default()
    };
    run(case, cluster, bounds, OUTAGE, |t| t.add_primary(), |t| t.remove_primary());
}

#[test]
fn cluster_flush() {
    let Some(cluster) = start() else { return };
    let case =
        Case { name: "cluster_flush", topology: TOPOLOGY, fault: "`FLUSHALL` on one primary" };
    let bounds = Bounds { forgets: true, loses_blocks: true, ..failover() };
    let flush = |t: &mut ClusterTopology| drop(t.struck_server().command(&["FLUSHALL"]));
    run(case, cluster, bounds, AT_ONCE, flush, |_| ());
}

/// The cluster itself is whole, and has no failover.
#[test]
fn cluster_partition() {
    if !is_wanted() {
        return;
    }
    let Some(cluster) = ClusterTopology::start_behind_proxies() else { return };
    let case = Case {
        name: "cluster_partition",
        topology: TOPOLOGY,
        fault: "all nodes are cut off from one primary without a word for 3 s",
    };
    let cut = |topology: &mut ClusterTopology| topology.set_wire(Fault::Silent);
    run(case, cluster, Bounds::default(), OUTAGE, cut, |t| t.set_wire(Fault::None));
}
