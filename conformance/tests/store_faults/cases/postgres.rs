//! PostgreSQL with a streaming replica, as the store and for the records.

use std::time::Duration;

use catraca_testkit::fault_proxy::Fault;

use super::{AT_ONCE, LONG_OUTAGE, NOTICED, OUTAGE};
use crate::bounds::Bounds;
use crate::lock_load::NAMES;
use crate::run::{Case, run};
use crate::topology::{PostgresPair, Replication};

const TOPOLOGY: &str = "PostgreSQL";

/// The bounds of a server that loses nothing.
fn lossless() -> Bounds {
    Bounds {
        deadline: Duration::from_millis(250),
        recovers: Duration::from_secs(4),
        // The records are on the same server.
        acts_wait: true,
        ..Bounds::default()
    }
}

/// The bounds of a server that does not answer for 3 s and loses nothing.
fn outage() -> Bounds {
    Bounds { degrades_for: NOTICED, ..lossless() }
}

/// A failover that loses nothing.
fn promotion() -> Bounds {
    Bounds { waits_grace: true, replaces: true, ..lossless() }
}

/// What a failover to a replica may lose that is not synchronous.
fn failover() -> Bounds {
    let double_resource = NAMES;
    Bounds { exact_limits: 1, limits: 2, double_resource, ..promotion() }
}

fn case(name: &'static str, fault: &'static str) -> Case {
    Case { name, topology: TOPOLOGY, fault }
}

/// `kill -9` of the primary; the replica is promoted.
fn kill_and_promote(pair: &mut PostgresPair) {
    pair.primary.stop("KILL");
    pair.promote();
}

#[test]
fn postgres_kill() {
    let pair = || Some(PostgresPair::start(Replication::Asynchronous));
    let case = case("postgres_kill", "`kill -9`, restart after 3 s");
    run(case, pair, outage(), OUTAGE, |p| p.primary.stop("KILL"), |p| p.primary.run());
}

#[test]
fn postgres_stop() {
    let pair = || Some(PostgresPair::start(Replication::Asynchronous));
    let case = case("postgres_stop", "`SIGSTOP` of every process, `SIGCONT` after 3 s");
    let stop = |pair: &mut PostgresPair| pair.primary.signal_all("STOP");
    run(case, pair, outage(), OUTAGE, stop, |p| p.primary.signal_all("CONT"));
}

/// An orderly switch: the primary ends when the replica has everything.
#[test]
fn postgres_switch() {
    let pair = || Some(PostgresPair::start(Replication::Asynchronous));
    let case = case("postgres_switch", "orderly stop of the primary, promotion of the replica");
    let switch = |pair: &mut PostgresPair| {
        pair.primary.stop("INT");
        pair.promote();
    };
    run(case, pair, promotion(), AT_ONCE, switch, |_| ());
}

#[test]
fn postgres_failover() {
    let pair = || Some(PostgresPair::start(Replication::Asynchronous));
    let case = case("postgres_failover", "`kill -9`, promotion of the replica");
    run(case, pair, failover(), AT_ONCE, kill_and_promote, |_| ());
}

#[test]
fn postgres_sync_failover() {
    let pair = || Some(PostgresPair::start(Replication::Synchronous));
    let case = case("postgres_sync_failover", "`kill -9`, promotion of a synchronous replica");
    run(case, pair, promotion(), AT_ONCE, kill_and_promote, |_| ());
}

/// The old primary is restarted as it was: two servers accept writes, and nodes must use the one
/// with the newer timeline.
#[test]
fn postgres_old_primary() {
    let pair = || Some(PostgresPair::start(Replication::Synchronous));
    let case = case(
        "postgres_old_primary",
        "`kill -9`, promotion of a synchronous replica; the old primary returns as a primary",
    );
    let mend = |pair: &mut PostgresPair| {
        // Without its replica, commits of the old primary would wait for ever.
        let settings = pair.primary.data().join("postgresql.auto.conf");
        std::fs::write(settings, "").unwrap();
        pair.primary.run();
    };
    run(case, pair, promotion(), OUTAGE, kill_and_promote, mend);
}

#[test]
fn postgres_pooler_failover() {
    let pair = || PostgresPair::start_behind_pooler(Replication::Asynchronous);
    let case = case(
        "postgres_pooler_failover",
        "behind PgBouncer: `kill -9`, promotion of the replica, and the pooler is reconfigured",
    );
    run(case, pair, failover(), AT_ONCE, kill_and_promote, |_| ());
}

#[test]
fn postgres_truncate() {
    let pair = || Some(PostgresPair::start(Replication::Asynchronous));
    let case = case("postgres_truncate", "`TRUNCATE` of the cells");
    let forgets = true;
    let loses_blocks = true;
    let bounds = Bounds { exact_limits: 1, limits: 2, forgets, loses_blocks, ..lossless() };
    let truncate = |pair: &mut PostgresPair| {
        pair.primary.psql("postgres", "TRUNCATE catraca_store.cells");
    };
    run(case, pair, bounds, AT_ONCE, truncate, |_| ());
}

#[test]
fn postgres_partition() {
    let pair = || Some(PostgresPair::start(Replication::Asynchronous));
    let fault = "one of three nodes is cut off without a word for 8 s";
    let case = case("postgres_partition", fault);
    let cut = |pair: &mut PostgresPair| pair.set_wire(1, Fault::Silent);
    // Records are reached without the proxies.
    let bounds = Bounds { acts_wait: false, cut_off_node: Some(1), ..outage() };
    run(case, pair, bounds, LONG_OUTAGE, cut, |p| p.set_wire(1, Fault::None));
}

#[test]
fn postgres_replica() {
    let pair = || Some(PostgresPair::start(Replication::Asynchronous));
    let case = case("postgres_replica", "the replica is killed, and returns after 3 s");
    let bounds = Bounds {
        limits: 0,
        degrades: false,
        refuses: false,
        recovers: Duration::ZERO,
        acts_wait: false,
        ..lossless()
    };
    run(case, pair, bounds, OUTAGE, |p| p.replica.stop("KILL"), |p| p.replica.run());
}
