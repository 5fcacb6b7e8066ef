//! The parts that are one cargo command each.
//!
//! All of them use the `ci` profile, so that one build serves all tests. Must not interpret
//! output: the exit status decides.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use catraca_conformance::{TestContext, packages};

/// Decisions compared with the oracle in a normal run.
const ORACLE_DECISIONS: u64 = 10_000_000;
/// Kills of a deep run; `unit` has 200.
const KILLS: &str = "1000";
/// Keys of a deep run: of a flood, and with a full window each.
const FLOOD_KEYS: &str = "10000000";
const ACTIVE_KEYS: &str = "1000000";
const GATE_SEED: &str = "20261116";

pub(crate) fn fmt(context: &TestContext) -> Result<()> {
    context.processes.run(&mut context.repo.cargo(&["fmt", "--all", "--check"]))
}

pub(crate) fn clippy(context: &TestContext) -> Result<()> {
    let args = ["clippy", "--workspace", "--all-targets", "--profile", "ci"];
    context.processes.run(context.repo.cargo(&args).args(["--", "-D", "warnings"]))
}

pub(crate) fn doc(context: &TestContext) -> Result<()> {
    let args = ["doc", "--no-deps", "--workspace", "--profile", "ci"];
    let mut cargo = context.repo.cargo(&args);
    // With the examples, cargo takes the dependencies that `clippy` checked: without a target that
    // uses dev-dependencies, their features differ, and they would be checked again.
    cargo.args(["--lib", "--bin", "xtask", "--examples"]);
    context.processes.run(cargo.env("RUSTDOCFLAGS", "-D warnings"))
}

/// The heavy targets are in here too, but run small: they read their size from the environment.
pub(crate) fn unit(context: &TestContext) -> Result<()> {
    let postgres = packages::postgres(context)?;
    // All targets run, so that one run shows everything that fails.
    let args = ["test", "--workspace", "--profile", "ci", "--no-fail-fast"];
    let mut cargo = context.repo.cargo(&args);
    // What needs Redis has parts of its own, and is left out here.
    cargo.env("CATRACA_POSTGRES_BIN", postgres).env("CATRACA_REDIS_SERVER", "");
    if context.factor > 1 {
        cargo.env("CATRACA_FLOOD_KEYS", FLOOD_KEYS).env("CATRACA_ACTIVE_KEYS", ACTIVE_KEYS);
    }
    context.processes.run(&mut cargo)
}

/// Processes killed while they write, until chance has seen most moments.
pub(crate) fn kills(context: &TestContext) -> Result<()> {
    let args = ["test", "--workspace", "--profile", "ci", "--test", "faults"];
    let mut cargo = context.repo.cargo(&args);
    cargo.args(["--", "what_was_acknowledged_survives"]).env("CATRACA_SEED", seed(true)?);
    context.processes.run(cargo.env("CATRACA_KILLS", KILLS))
}

pub(crate) fn oracle(context: &TestContext) -> Result<()> {
    let seed = seed(context.factor > 1)?;
    let decisions = ORACLE_DECISIONS * u64::from(context.factor);
    println!("{decisions} decisions; repeat with: CATRACA_SEED={seed} cargo xtask test oracle");
    // The whole workspace, so that what `unit` built is used again.
    let args = ["test", "--workspace", "--profile", "ci", "--test", "rules"];
    context.processes.run(
        context
            .repo
            .cargo(&args)
            .args(["--", "oracle::", "--nocapture"])
            .env("CATRACA_ORACLE_DECISIONS", decisions.to_string())
            .env("CATRACA_SEED", seed),
    )
}

/// A normal run always uses the same seeds, so that it never fails because of a change that did not
/// cause the failure; a deep run uses new ones.
fn seed(deep: bool) -> Result<String> {
    if let Ok(seed) = std::env::var("CATRACA_SEED") {
        return Ok(seed);
    }
    if !deep {
        return Ok(GATE_SEED.to_owned());
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok((since.as_nanos() as u64).to_string())
}
