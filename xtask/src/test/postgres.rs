//! The PostgreSQL store on a real server and behind a real pooler, and locks in it as callers of
//! the service meet them.
//!
//! Installs both when they are missing and the machine can: set-up belongs to the run. Must not
//! start them; the tests do, and end them.

use std::process::Command;

use anyhow::Result;
use catraca_conformance::{TestContext, packages};

use super::redis::{LOCKS, POSTGRES_ONLY};

/// Batches compared with core in a normal run.
const STEPS: (&str, u32) = ("CATRACA_POSTGRES_STEPS", 100_000);
/// Rounds of callers at a barrier.
const ROUNDS: (&str, u32) = ("CATRACA_POSTGRES_ROUNDS", 100);
pub(super) const POOLER: &str = "pgbouncer";
/// Tests of whole servers that share a PostgreSQL, also behind the pooler.
pub(super) const SERVICE: [&str; 2] = [POSTGRES_ONLY, "shared::pooler::"];
/// The module of `tests/stores` that needs PostgreSQL and the pooler.
pub(super) const STORES: &str = "postgres::";

pub(crate) fn run(context: &TestContext) -> Result<()> {
    let programs = packages::postgres(context)?;
    let pooler = packages::need(context, POOLER, POOLER)?;
    let mut store = tests(context, &["--test", "stores", "--", STORES, "--nocapture"]);
    for (name, default) in [STEPS, ROUNDS] {
        store.env(name, context.size(name, default));
    }
    // Callers of locks must see the same behaviour on every store.
    let mut locks = tests(context, &["--test", "server", "--"]);
    locks.args(LOCKS).env("CATRACA_LOCKS_STORE", "postgres");
    let mut shared = tests(context, &["--test", "server", "--"]);
    shared.args(SERVICE);
    for mut cargo in [store, locks, shared] {
        cargo.env("CATRACA_POSTGRES_BIN", &programs).env("CATRACA_PGBOUNCER", &pooler);
        context.processes.run(&mut cargo)?;
    }
    Ok(())
}

fn tests(context: &TestContext, which: &[&str]) -> Command {
    let mut cargo = context.repo.cargo(&["test", "--workspace", "--profile", "ci"]);
    cargo.args(which);
    cargo
}
