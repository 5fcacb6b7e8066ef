//! Redis as the store, while the PostgreSQL of the records fails: callers do not notice, acts count
//! on every node, and a block that was answered as durable is kept.

use std::time::Duration;

use catraca_testkit::fault_proxy::Fault;

use super::OUTAGE;
use crate::bounds::Bounds;
use crate::run::{Case, run};
use crate::topology::{RedisWithRecords, Replication};

const TOPOLOGY: &str = "Redis, records in PostgreSQL";

fn undisturbed() -> Bounds {
    Bounds {
        limits: 0,
        degrades: false,
        refuses: false,
        recovers: Duration::ZERO,
        records_fail: true,
        ..Bounds::default()
    }
}

/// As [`undisturbed`]; the replica is promoted.
fn promotion() -> Bounds {
    Bounds { replaces: true, ..undisturbed() }
}

fn case(name: &'static str, fault: &'static str) -> Case {
    Case { name, topology: TOPOLOGY, fault }
}

#[test]
fn records_kill() {
    let start = || RedisWithRecords::start(Replication::Asynchronous);
    let case = case("records_kill", "`kill -9` of the records, restart after 3 s");
    let kill = |t: &mut RedisWithRecords| t.records.primary.stop("KILL");
    run(case, start, undisturbed(), OUTAGE, kill, |t| t.records.primary.run());
}

#[test]
fn records_stop() {
    let start = || RedisWithRecords::start(Replication::Asynchronous);
    let case = case("records_stop", "`SIGSTOP` of the records, `SIGCONT` after 3 s");
    let stop = |t: &mut RedisWithRecords| t.records.primary.signal_all("STOP");
    run(case, start, undisturbed(), OUTAGE, stop, |t| t.records.primary.signal_all("CONT"));
}

#[test]
fn records_failover() {
    let start = || RedisWithRecords::start(Replication::Synchronous);
    let case = case(
        "records_failover",
        "`kill -9` of the records, promotion of a synchronous replica after 3 s",
    );
    let kill = |t: &mut RedisWithRecords| t.records.primary.stop("KILL");
    run(case, start, promotion(), OUTAGE, kill, |t| t.promote());
}

#[test]
fn records_pooler_failover() {
    let start = || RedisWithRecords::start_behind_pooler(Replication::Synchronous);
    let case = case(
        "records_pooler_failover",
        "behind PgBouncer: `kill -9` of the records, promotion of a synchronous replica after 3 s, \
         and the pooler is reconfigured",
    );
    let kill = |t: &mut RedisWithRecords| t.records.primary.stop("KILL");
    run(case, start, promotion(), OUTAGE, kill, |t| t.promote());
}

/// What the node does that is cut off reaches the others through the store.
#[test]
fn records_partition() {
    let fault = "one of three nodes is cut off from the records without a word for 3 s";
    let case = case("records_partition", fault);
    let start = RedisWithRecords::start_behind_proxies;
    let cut = |t: &mut RedisWithRecords| t.records.set_wire(1, Fault::Silent);
    run(case, start, undisturbed(), OUTAGE, cut, |t| t.records.set_wire(1, Fault::None));
}

/// Nodes keep their connections to the old primary, which can commit nothing any more.
#[test]
fn records_old_primary() {
    let start = || RedisWithRecords::start(Replication::Synchronous);
    let case = case(
        "records_old_primary",
        "`SIGSTOP` of the records, promotion of a synchronous replica, `SIGCONT` of the old \
         primary after 3 s",
    );
    let stop = |t: &mut RedisWithRecords| {
        t.records.primary.signal_all("STOP");
        t.promote();
    };
    run(case, start, promotion(), OUTAGE, stop, |t| t.records.primary.signal_all("CONT"));
}
