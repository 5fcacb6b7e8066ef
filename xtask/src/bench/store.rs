//! What the benchmark of the Redis store needs first: a server, installed if it is missing.
//!
//! Must not measure anything.

use std::time::Duration;

use anyhow::Result;
use catraca_conformance::{ProcessGuard, Repo, TestContext, packages};

const PATIENCE: Duration = Duration::from_secs(600);

pub(super) fn prepare(repo: &Repo) -> Result<()> {
    let processes = ProcessGuard::new(PATIENCE);
    let context = TestContext { repo, processes: &processes, factor: 1 };
    packages::need(&context, "redis-server", "redis-server").map(drop)
}
