//! The Redis store on real servers: the contract, troubles, outages, and who may be trusted with
//! blocks.
//!
//! Installs the server when it is missing and the machine can: set-up belongs to the run. Must not
//! start a server; the tests do, and end it.

use anyhow::Result;

use super::Room;
use crate::packages;

const SERVER: &str = "redis-server";
/// Operations compared with the memory store, and rounds of a crowd, of which each deep run has ten
/// times as many.
const OPERATIONS: u32 = 1_000_000;
const ROUNDS: u32 = 100;

pub(crate) fn run(room: &Room) -> Result<()> {
    let server = packages::need(room, SERVER, SERVER)?;
    let args = ["test", "--workspace", "--profile", "ci", "--test", "redis", "--test", "outages"];
    let mut cargo = room.repo.cargo(&args);
    cargo.args(["--", "--nocapture"]).env("CATRACA_REDIS_SERVER", server);
    cargo.env("CATRACA_REDIS_OPERATIONS", (OPERATIONS * room.factor).to_string());
    cargo.env("CATRACA_REDIS_ROUNDS", (ROUNDS * room.factor).to_string());
    if room.factor > 1 {
        cargo.env("CATRACA_DEEP", "1");
    }
    room.leash.run(&mut cargo)
}
