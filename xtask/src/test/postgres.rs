//! The PostgreSQL store on a real server and behind a real pooler, and locks in it as callers of
//! the service meet them.
//!
//! Installs both when they are missing and the machine can: set-up belongs to the run. Must not
//! start them; the tests do, and end them.

use std::process::Command;

use anyhow::Result;

use super::Room;
use super::redis::LOCKS;
use crate::packages;

/// Batches compared with core in a normal run.
const STEPS: (&str, u32) = ("CATRACA_POSTGRES_STEPS", 100_000);
/// Rounds of callers at a barrier.
const ROUNDS: (&str, u32) = ("CATRACA_POSTGRES_ROUNDS", 100);
const POOLER: &str = "pgbouncer";

pub(crate) fn run(room: &Room) -> Result<()> {
    let programs = packages::postgres(room)?;
    let pooler = packages::need(room, POOLER, POOLER)?;
    let mut store = tests(room, &["--test", "postgres", "--", "--nocapture"]);
    store.env("CATRACA_PGBOUNCER", pooler);
    for (name, usual) in [STEPS, ROUNDS] {
        store.env(name, room.size(name, usual));
    }
    // What callers of locks see is the same wherever locks are kept.
    let mut locks = tests(room, &["--test", "http", "--"]);
    locks.args(LOCKS).env("CATRACA_LOCKS_STORE", "postgres");
    let shared = tests(room, &["--test", "http", "--", "postgresql"]);
    for mut cargo in [store, locks, shared] {
        room.leash.run(cargo.env("CATRACA_POSTGRES_BIN", &programs))?;
    }
    Ok(())
}

fn tests(room: &Room, which: &[&str]) -> Command {
    let mut cargo = room.repo.cargo(&["test", "--workspace", "--profile", "ci"]);
    cargo.args(which);
    cargo
}
