//! The parts that are one cargo command each.
//!
//! All of them use the `ci` profile, so that nothing is built twice. Must not interpret output:
//! the exit status decides.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use super::Room;
use crate::packages;

/// Decisions compared with the oracle in a normal run.
const ORACLE_DECISIONS: u64 = 10_000_000;
/// Kills of a deep run; `unit` has 200.
const KILLS: &str = "1000";
const GATE_SEED: &str = "20261116";

pub(crate) fn fmt(room: &Room) -> Result<()> {
    room.leash.run(&mut room.repo.cargo(&["fmt", "--all", "--check"]))
}

pub(crate) fn clippy(room: &Room) -> Result<()> {
    let args = ["clippy", "--workspace", "--all-targets", "--profile", "ci"];
    room.leash.run(room.repo.cargo(&args).args(["--", "-D", "warnings"]))
}

pub(crate) fn doc(room: &Room) -> Result<()> {
    let args = ["doc", "--no-deps", "--workspace", "--profile", "ci"];
    room.leash.run(room.repo.cargo(&args).env("RUSTDOCFLAGS", "-D warnings"))
}

/// The heavy targets are in here too, but run small: they read their size from the environment.
pub(crate) fn unit(room: &Room) -> Result<()> {
    let postgres = packages::postgres(room)?;
    let mut cargo = room.repo.cargo(&["test", "--workspace", "--profile", "ci"]);
    // What needs Redis has parts of its own, and is left out here.
    cargo.env("CATRACA_POSTGRES_BIN", postgres).env("CATRACA_REDIS_SERVER", "");
    room.leash.run(&mut cargo)
}

/// Processes killed while they write, until chance has seen most moments.
pub(crate) fn kills(room: &Room) -> Result<()> {
    let args = ["test", "--workspace", "--profile", "ci", "--test", "faults"];
    let mut cargo = room.repo.cargo(&args);
    cargo.args(["--", "what_was_acknowledged_survives"]).env("CATRACA_SEED", seed(true)?);
    room.leash.run(cargo.env("CATRACA_KILLS", KILLS))
}

pub(crate) fn oracle(room: &Room) -> Result<()> {
    let seed = seed(room.factor > 1)?;
    let decisions = ORACLE_DECISIONS * u64::from(room.factor);
    println!("{decisions} decisions; repeat with: CATRACA_SEED={seed} cargo xtask test oracle");
    // The whole workspace, so that what `unit` built is used again.
    let args = ["test", "--workspace", "--profile", "ci", "--test", "oracle"];
    room.leash.run(
        room.repo
            .cargo(&args)
            .args(["--", "--nocapture"])
            .env("CATRACA_ORACLE_DECISIONS", decisions.to_string())
            .env("CATRACA_SEED", seed),
    )
}

pub(crate) fn museum(room: &Room) -> Result<()> {
    // The whole workspace, so that the dependencies which `unit` built are used again.
    let args = ["test", "--workspace", "--profile", "ci", "--features", "catraca-testkit/museum"];
    let tests = ["--test", "museum", "--test", "locks", "--test", "lock_history"];
    room.leash.run(room.repo.cargo(&args).args(tests).args(["--", "--nocapture"]))
}

/// The gate always tells the same stories, so that it never fails for a change that did not cause
/// it; a deep run tells new ones.
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
