//! The Redis store on real servers: the contract, troubles, outages, locks, and who may be trusted
//! with blocks.
//!
//! Installs the server when it is missing and the machine can: set-up belongs to the run. Must not
//! start a server; the tests do, and end it.

use std::process::Command;

use anyhow::Result;

use super::Room;
use crate::packages;

const SERVER: &str = "redis-server";
/// Operations compared with the memory store, and rounds of a crowd, of which each deep run has ten
/// times as many.
const OPERATIONS: (&str, u32) = ("CATRACA_REDIS_OPERATIONS", 1_000_000);
const ROUNDS: (&str, u32) = ("CATRACA_REDIS_ROUNDS", 100);

/// What callers of locks see, over HTTP.
pub(super) const LOCKS: [&str; 4] =
    ["locks::leases::", "locks::operators::", "locks::slots::", "locks::waiting::"];

pub(crate) fn run(room: &Room) -> Result<()> {
    let server = packages::need(room, SERVER, SERVER)?;
    let postgres = packages::postgres(room)?;
    let mut store = tests(room, &["--test", "redis", "--test", "outages", "--", "--nocapture"]);
    for (name, usual) in [OPERATIONS, ROUNDS] {
        store.env(name, room.size(name, usual));
    }
    if room.factor > 1 {
        store.env("CATRACA_DEEP", "1");
    }
    // The service's nodes keep their records in PostgreSQL; what they share there is another part.
    let mut service = tests(room, &["--test", "http", "--", "shared::", "--skip", "postgresql"]);
    service.env("CATRACA_POSTGRES_BIN", postgres);
    // What callers of locks see is the same wherever locks are kept.
    let mut locks = tests(room, &["--test", "http", "--"]);
    locks.args(LOCKS).env("CATRACA_LOCKS_STORE", "redis");
    for mut cargo in [store, service, locks] {
        room.leash.run(cargo.env("CATRACA_REDIS_SERVER", &server))?;
    }
    Ok(())
}

fn tests(room: &Room, which: &[&str]) -> Command {
    let mut cargo = room.repo.cargo(&["test", "--workspace", "--profile", "ci"]);
    cargo.args(which);
    cargo
}
