//! A primary and two replicas under three Sentinels.

use std::time::Duration;

use catraca_testkit::fault_proxy::Fault;

use super::{AT_ONCE, OUTAGE};
use crate::bounds::Bounds;
use crate::lock_load::NAMES;
use crate::run::{Case, is_wanted, run, run_repeatedly};
use crate::topology::SentinelTopology;

const TOPOLOGY: &str = "Sentinel";

fn start() -> Option<SentinelTopology> {
    if !is_wanted() {
        return None;
    }
    SentinelTopology::start()
}

/// What a failover may lose: the admissions and the leases that no replica has.
fn failover() -> Bounds {
    Bounds {
        exact_limits: 1,
        limits: 2,
        double_resource: NAMES,
        waits_grace: true,
        grace_margin: Duration::from_secs(2),
        ..Bounds::default()
    }
}

#[test]
fn sentinel_kill() {
    let Some(group) = start() else { return };
    let case = Case {
        name: "sentinel_kill",
        topology: TOPOLOGY,
        fault: "`kill -9` of the primary; the old one returns after the failover",
    };
    let kill = |topology: &mut SentinelTopology| {
        topology.group.servers[0].kill();
        topology.wait_for_failover();
    };
    run(case, group, failover(), OUTAGE, kill, |t| t.group.servers[0].restart());
}

#[test]
fn sentinel_stop() {
    let Some(group) = start() else { return };
    let case = Case {
        name: "sentinel_stop",
        topology: TOPOLOGY,
        fault: "`SIGSTOP` of the primary, `SIGCONT` after the failover",
    };
    let stop = |topology: &mut SentinelTopology| {
        topology.group.servers[0].signal("STOP");
        topology.wait_for_failover();
    };
    run(case, group, failover(), OUTAGE, stop, |t| t.group.servers[0].signal("CONT"));
}

#[test]
fn sentinel_failover() {
    let Some(group) = start() else { return };
    let case = Case { name: "sentinel_failover", topology: TOPOLOGY, fault: "`SENTINEL FAILOVER`" };
    run(case, group, failover(), AT_ONCE, |t| t.fail_over(), |_| ());
}

/// Each failover is led by another Sentinel, and each node prefers another one. No lease of a kind
/// with `failover_grace` has two holders, and a second after the order nothing is admitted above a
/// limit that is not `degraded`.
#[test]
fn sentinel_ten_failovers() {
    const TIMES: usize = 10;
    let Some(group) = start() else { return };
    let case = Case {
        name: "sentinel_ten_failovers",
        topology: TOPOLOGY,
        fault: "`SENTINEL FAILOVER` ten times, each on new keys and led by another Sentinel",
    };
    let mut leaders = (0..group.group.sentinels.len()).cycle();
    let fail_over = |topology: &mut SentinelTopology| {
        topology.fail_over_by(leaders.next().unwrap_or_default());
    };
    // Sentinels announce a failover before the promotion, so lost admissions were `degraded`.
    let bounds = Bounds { exact_limits: 0, double_resource: TIMES * NAMES, ..failover() };
    run_repeatedly(TIMES, case, group, bounds, fail_over);
}

/// The first node prefers the Sentinel that hangs.
#[test]
fn sentinel_hung() {
    let Some(group) = start() else { return };
    let case = Case {
        name: "sentinel_hung",
        topology: TOPOLOGY,
        fault: "`SIGSTOP` of a Sentinel, then `SENTINEL FAILOVER`",
    };
    let stop = |topology: &mut SentinelTopology| {
        topology.group.sentinels[0].signal("STOP");
        topology.fail_over();
    };
    run(case, group, failover(), OUTAGE, stop, |t| t.group.sentinels[0].signal("CONT"));
}

/// No node can confirm the primary: decisions are degraded, and `payment` is refused.
#[test]
fn sentinel_quorum_lost() {
    let Some(group) = start() else { return };
    let case = Case {
        name: "sentinel_quorum_lost",
        topology: TOPOLOGY,
        fault: "`SIGSTOP` of two Sentinels for 3 s, without a failover",
    };
    let signal = |topology: &SentinelTopology, name: &str| {
        topology.group.sentinels[..2].iter().for_each(|sentinel| sentinel.signal(name));
    };
    let stop = |topology: &mut SentinelTopology| signal(topology, "STOP");
    run(case, group, Bounds::default(), OUTAGE, stop, |t| signal(t, "CONT"));
}

/// One node gets no message about a failover.
#[test]
fn sentinel_partition() {
    let Some(group) = start() else { return };
    let case = Case {
        name: "sentinel_partition",
        topology: TOPOLOGY,
        fault: "one of three nodes is cut off from all Sentinels, then `SENTINEL FAILOVER`",
    };
    let cut = |topology: &mut SentinelTopology| {
        topology.set_wires(1, Fault::Silent);
        topology.fail_over();
    };
    run(case, group, failover(), OUTAGE, cut, |t| t.set_wires(1, Fault::None));
}

#[test]
fn sentinel_flush() {
    let Some(group) = start() else { return };
    let case = Case { name: "sentinel_flush", topology: TOPOLOGY, fault: "`FLUSHALL`" };
    let bounds = Bounds { forgets: true, loses_blocks: true, ..failover() };
    let flush = |t: &mut SentinelTopology| drop(t.group.servers[0].command(&["FLUSHALL"]));
    run(case, group, bounds, AT_ONCE, flush, |_| ());
}

#[test]
fn sentinel_replica() {
    let Some(group) = start() else { return };
    let case = Case {
        name: "sentinel_replica",
        topology: TOPOLOGY,
        fault: "a replica is added, another one is killed",
    };
    let bounds = Bounds {
        limits: 0,
        degrades: false,
        refuses: false,
        recovers: Duration::ZERO,
        ..Bounds::default()
    };
    run(case, group, bounds, AT_ONCE, |t| t.replace_replica(), |_| ());
}
