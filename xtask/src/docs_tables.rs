//! `cargo xtask docs-tables`: writes the tables of settings in the guide.
//!
//! A test of the server makes them from `catraca config schema` and fails while the guide differs;
//! this runs that test so that it writes.

use anyhow::{Result, ensure};
use catraca_conformance::Repo;

pub(crate) fn docs_tables(repo: &Repo) -> Result<()> {
    let mut test = repo.command("cargo");
    // The whole workspace, so that dependencies have the features with which tests built them.
    test.args(["test", "--workspace", "--profile", "ci", "--test", "server", "--"]);
    test.arg("guide_tables").env("CATRACA_BLESS", "1");
    let status = test.status()?;
    ensure!(status.success(), "the tables could not be made: {status}");
    Ok(())
}
