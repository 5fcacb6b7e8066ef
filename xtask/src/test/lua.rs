//! Compares the Redis script with core, on a real redis-server.
//!
//! Installs the server when it is missing and the machine can: set-up belongs to the run. Must not
//! start the server; the test does, and ends it.

use anyhow::Result;
use catraca_conformance::{TestContext, packages};

use super::redis::SERVER;

/// How many batches of each kind are compared; the environment may ask for others.
const STEPS: &str = "CATRACA_LUA_STEPS";
const DEFAULT_STEPS: u32 = 30_000;
/// The module of `tests/stores` with the comparison.
pub(super) const MODULE: &str = "lua::";

pub(crate) fn run(context: &TestContext) -> Result<()> {
    let server = packages::need(context, SERVER, SERVER)?;
    let args = ["test", "--workspace", "--profile", "ci", "--test", "stores"];
    let mut cargo = context.repo.cargo(&args);
    cargo
        .args(["--", MODULE, "--nocapture"])
        .env("CATRACA_REDIS_SERVER", server)
        .env(STEPS, context.size(STEPS, DEFAULT_STEPS));
    context.processes.run(&mut cargo)
}
