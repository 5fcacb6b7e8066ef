//! The Redis store on real servers: the contract, errors, outages, locks, and who may be trusted
//! with blocks.
//!
//! Installs the server when it is missing and the machine can: set-up belongs to the run. Must not
//! start a server; the tests do, and end it.

use std::process::Command;

use anyhow::Result;
use catraca_conformance::{TestContext, packages};

pub(super) const SERVER: &str = "redis-server";
/// Operations compared with the memory store, decisions compared with the oracle, and rounds of a
/// crowd, of which each deep run has ten times as many.
const OPERATIONS: (&str, u32) = ("CATRACA_REDIS_OPERATIONS", 1_000_000);
const DECISIONS: (&str, u32) = ("CATRACA_REDIS_DECISIONS", 100_000);
const ROUNDS: (&str, u32) = ("CATRACA_REDIS_ROUNDS", 100);

/// Tests of whole servers that share a Redis, with records in PostgreSQL or of their own. A test
/// of this crate fails if a module that starts Redis is missing here.
pub(super) const SERVICE: [&str; 6] = [
    "shared::",
    "http::booking_nodes::",
    "http::node_scope::",
    "http::shared_problems::",
    "http::shared_store::",
    "http::timeouts::",
];
/// Tests whose names contain this need PostgreSQL alone; `unit` and the part `postgres` run them.
pub(super) const POSTGRES_ONLY: &str = "postgresql";
/// Kills of a proxied request's client, upstream and server, on both stores.
pub(super) const KILLS: &str = "proxy::kills::";
/// The modules of `tests/stores` that need Redis, of which the part `lua` runs one.
pub(super) const STORES: [&str; 2] = ["redis::", "outages::"];
/// What callers of locks see, over HTTP.
pub(super) const LOCKS: [&str; 4] =
    ["locks::leases::", "locks::operators::", "locks::slots::", "locks::waiting::"];

pub(crate) fn run(context: &TestContext) -> Result<()> {
    let server = packages::need(context, SERVER, SERVER)?;
    let postgres = packages::postgres(context)?;
    let [contract, outages] = STORES;
    let mut store = tests(context, &["--test", "stores", "--", contract, "--nocapture"]);
    for (name, default) in [OPERATIONS, DECISIONS, ROUNDS] {
        store.env(name, context.size(name, default));
    }
    // After the others, because they measure how long callers wait.
    let mut outages = tests(context, &["--test", "stores", "--", outages, "--nocapture"]);
    if context.factor > 1 {
        outages.env("CATRACA_DEEP", "1");
    }
    let mut service = tests(context, &["--test", "server", "--"]);
    service.args(SERVICE).args(["--skip", POSTGRES_ONLY]).env("CATRACA_POSTGRES_BIN", postgres);
    if context.factor > 1 {
        service.env("CATRACA_DEEP", "1");
    }
    let mut kills = tests(context, &["--test", "server", "--", KILLS, "--nocapture"]);
    if context.factor > 1 {
        kills.env("CATRACA_DEEP", "1");
    }
    // Callers of locks must see the same behaviour on every store.
    let mut locks = tests(context, &["--test", "server", "--"]);
    locks.args(LOCKS).env("CATRACA_LOCKS_STORE", "redis");
    for mut cargo in [store, outages, service, kills, locks] {
        context.processes.run(cargo.env("CATRACA_REDIS_SERVER", &server))?;
    }
    Ok(())
}

fn tests(context: &TestContext, which: &[&str]) -> Command {
    let mut cargo = context.repo.cargo(&["test", "--workspace", "--profile", "ci"]);
    cargo.args(which);
    cargo
}
