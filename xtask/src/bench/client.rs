//! What the benchmark of the client needs first: the `dist` binary. Must not measure anything.

use std::time::Duration;

use anyhow::Result;
use catraca_conformance::{ProcessGuard, Repo, TestContext, binary};

/// A build from nothing.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// The arguments that name what was built.
pub(super) fn prepare(repo: &Repo) -> Result<Vec<String>> {
    let processes = ProcessGuard::new(PATIENCE);
    let context = TestContext { repo, processes: &processes, factor: 1 };
    let ours = binary::build_dist(&context)?;
    Ok(vec!["--catraca".to_owned(), ours.display().to_string()])
}
