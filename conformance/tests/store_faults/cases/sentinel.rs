//! A primary and two replicas under three Sentinels.

use std::time::Duration;

use catraca_testkit::fault_proxy::Fault;

use super::{AT_ONCE, NOTICED, OUTAGE};
use crate::bounds::Bounds;
use crate::lock_load::NAMES;
use crate::run::{Case, run, run_repeatedly};
use crate::topology::{SENTINELS, SentinelTopology};

const TOPOLOGY: &str = "Sentinel";

/// While a group is split, both sides grant each name of a kind without `failover_grace`.
const SPLIT_DOUBLES: usize = 5 * NAMES;

/// What a failover may lose: the admissions and the leases that no replica has.
pub(super) fn failover() -> Bounds {
    Bounds {
        exact_limits: 1,
        limits: 2,
        double_resource: NAMES,
        waits_grace: true,
        grace_margin: Duration::from_secs(2),
        degrades_for: Duration::from_secs(1),
        replaces: true,
        ..Bounds::default()
    }
}

#[test]
fn sentinel_kill() {
    let case = Case {
        name: "sentinel_kill",
        topology: TOPOLOGY,
        fault: "`kill -9` of the primary; the old one returns after the failover",
    };
    let kill = |topology: &mut SentinelTopology| {
        topology.group.servers[0].kill();
        topology.wait_for_failover();
    };
    run(case, SentinelTopology::start, failover(), OUTAGE, kill, |t| t.group.servers[0].restart());
}

#[test]
fn sentinel_stop() {
    let case = Case {
        name: "sentinel_stop",
        topology: TOPOLOGY,
        fault: "`SIGSTOP` of the primary, `SIGCONT` after the failover",
    };
    let stop = |topology: &mut SentinelTopology| {
        topology.group.servers[0].signal("STOP");
        topology.wait_for_failover();
    };
    run(case, SentinelTopology::start, failover(), OUTAGE, stop, |t| {
        t.group.servers[0].signal("CONT")
    });
}

#[test]
fn sentinel_failover() {
    let case = Case { name: "sentinel_failover", topology: TOPOLOGY, fault: "`SENTINEL FAILOVER`" };
    run(case, SentinelTopology::start, failover(), AT_ONCE, |t| t.fail_over(), |_| ());
}

/// Each failover is led by another Sentinel, and each node prefers another one. No lease of a kind
/// with `failover_grace` has two holders, and a second after the order nothing is admitted above a
/// limit that is not `degraded`.
#[test]
fn sentinel_ten_failovers() {
    const TIMES: usize = 10;
    let case = Case {
        name: "sentinel_ten_failovers",
        topology: TOPOLOGY,
        fault: "`SENTINEL FAILOVER` ten times, each on new keys and led by another Sentinel",
    };
    let mut leaders = (0..SENTINELS).cycle();
    let fail_over = |topology: &mut SentinelTopology| {
        topology.fail_over_by(leaders.next().unwrap_or_default());
    };
    // Sentinels announce a failover before the promotion, so lost admissions were `degraded`.
    let bounds = Bounds { exact_limits: 0, double_resource: TIMES * NAMES, ..failover() };
    run_repeatedly(TIMES, case, SentinelTopology::start, bounds, fail_over);
}

/// The first node prefers the Sentinel that hangs.
#[test]
fn sentinel_hung() {
    let case = Case {
        name: "sentinel_hung",
        topology: TOPOLOGY,
        fault: "`SIGSTOP` of a Sentinel, then `SENTINEL FAILOVER`",
    };
    let stop = |topology: &mut SentinelTopology| {
        topology.group.sentinels[0].signal("STOP");
        topology.fail_over();
    };
    run(case, SentinelTopology::start, failover(), OUTAGE, stop, |t| {
        t.group.sentinels[0].signal("CONT")
    });
}

/// No node can confirm the primary: decisions are degraded, and `payment` is refused.
#[test]
fn sentinel_quorum_lost() {
    let case = Case {
        name: "sentinel_quorum_lost",
        topology: TOPOLOGY,
        fault: "`SIGSTOP` of two Sentinels for 3 s, without a failover",
    };
    let signal = |topology: &SentinelTopology, name: &str| {
        topology.group.sentinels[..2].iter().for_each(|sentinel| sentinel.signal(name));
    };
    let stop = |topology: &mut SentinelTopology| signal(topology, "STOP");
    // Nodes notice within a second.
    let bounds = Bounds { degrades_for: NOTICED, ..Bounds::default() };
    run(case, SentinelTopology::start, bounds, OUTAGE, stop, |t| signal(t, "CONT"));
}

/// One node gets no message about a failover.
#[test]
fn sentinel_partition() {
    let case = Case {
        name: "sentinel_partition",
        topology: TOPOLOGY,
        fault: "one of three nodes is cut off from all Sentinels, then `SENTINEL FAILOVER`",
    };
    let cut = |topology: &mut SentinelTopology| {
        topology.set_wires(1, Fault::Silent);
        topology.fail_over();
    };
    run(case, SentinelTopology::start, failover(), OUTAGE, cut, |t| t.set_wires(1, Fault::None));
}

#[test]
fn sentinel_flush() {
    let case = Case { name: "sentinel_flush", topology: TOPOLOGY, fault: "`FLUSHALL`" };
    let degrades_for = Duration::ZERO;
    let replaces = false;
    let bounds = Bounds { forgets: true, loses_blocks: true, degrades_for, replaces, ..failover() };
    let flush = |t: &mut SentinelTopology| drop(t.group.servers[0].command(&["FLUSHALL"]));
    run(case, SentinelTopology::start, bounds, AT_ONCE, flush, |_| ());
}

#[test]
fn sentinel_replica() {
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
    run(case, SentinelTopology::start, bounds, AT_ONCE, |t| t.replace_replica(), |_| ());
}

/// The old primary accepts writes of the one node that still reaches it, until it learns of the new
/// primary: that node must grant no `payment`, and its admissions are `degraded`.
#[test]
fn sentinel_split() {
    let case = Case {
        name: "sentinel_split",
        topology: TOPOLOGY,
        fault: "the primary and one of three nodes are cut off from everything else, until 3 s \
                after the failover",
    };
    // Each side uses the store that it reaches, so blocks and releases of the other arrive late.
    let bounds = Bounds { double_resource: SPLIT_DOUBLES, acts_wait: true, ..failover() };
    let cut = |topology: &mut SentinelTopology| {
        topology.split(Fault::Silent);
        topology.wait_for_failover();
        std::thread::sleep(OUTAGE);
    };
    let heal = |topology: &mut SentinelTopology| topology.split(Fault::None);
    run(case, SentinelTopology::start_divisible, bounds, AT_ONCE, cut, heal);
}
