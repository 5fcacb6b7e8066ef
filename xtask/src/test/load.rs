//! Loads the `dist` binary for a minute: no error, a fast server, memory that does not grow.
//!
//! The driver is that of the server's benchmark, which says what it saw. Must not judge: the
//! driver's exit status does.

use anyhow::Result;
use catraca_conformance::{TestContext, binary};

const DRIVER: &str = "bench/serve/Cargo.toml";
const SECONDS: &str = "60";

/// covers: 002-45, 002-46, 004-76, B-45
pub(crate) fn run(context: &TestContext) -> Result<()> {
    let binary = binary::build_dist(context)?;
    let mut driver = context.repo.cargo(&["run", "--release", "--manifest-path", DRIVER, "--"]);
    driver.args(["--soak", "--seconds", SECONDS, "--catraca"]).arg(binary);
    context.processes.run(&mut driver)
}
