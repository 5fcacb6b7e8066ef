//! Compares the Redis script with core, on a real redis-server.
//!
//! Must not start the server; the test does, and ends it.

use anyhow::Result;

use super::{Room, program};

pub(crate) fn run(room: &Room) -> Result<()> {
    let server = program::find_or_install(room, "redis-server")?;
    let args = ["test", "--workspace", "--profile", "ci", "--test", "lua"];
    let mut cargo = room.repo.cargo(&args);
    room.leash.run(cargo.args(["--", "--nocapture"]).env("CATRACA_REDIS_SERVER", server))
}
