//! The PostgreSQL store on a real server and behind a real pooler.
//!
//! Installs both when they are missing and the machine can: set-up belongs to the run. Must not
//! start them; the tests do, and end them.

use anyhow::Result;

use super::Room;
use crate::packages;

/// Batches compared with core in a normal run.
const STEPS: (&str, u32) = ("CATRACA_POSTGRES_STEPS", 100_000);
/// Rounds of callers at a barrier.
const ROUNDS: (&str, u32) = ("CATRACA_POSTGRES_ROUNDS", 100);
const POOLER: &str = "pgbouncer";

pub(crate) fn run(room: &Room) -> Result<()> {
    let programs = packages::postgres(room)?;
    let pooler = packages::need(room, POOLER, POOLER)?;
    let args = ["test", "--workspace", "--profile", "ci", "--test", "postgres"];
    let mut cargo = room.repo.cargo(&args);
    cargo.args(["--", "--nocapture"]);
    cargo.env("CATRACA_POSTGRES_BIN", programs).env("CATRACA_PGBOUNCER", pooler);
    for (name, usual) in [STEPS, ROUNDS] {
        cargo.env(name, room.size(name, usual));
    }
    room.leash.run(&mut cargo)
}
