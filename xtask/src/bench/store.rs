//! What the benchmark of the Redis store needs first: a server, installed if it is missing.
//!
//! Must not measure anything.

use std::time::Duration;

use anyhow::Result;

use crate::leash::Leash;
use crate::packages;
use crate::repo::Repo;
use crate::test::Room;

const PATIENCE: Duration = Duration::from_secs(600);

pub(super) fn prepare(repo: &Repo) -> Result<()> {
    let leash = Leash::new(PATIENCE);
    let room = Room { repo, leash: &leash, factor: 1 };
    packages::need(&room, "redis-server", "redis-server").map(drop)
}
