//! `cargo xtask openapi`: replaces the checked-in copy of the OpenAPI document, and the types of
//! the TypeScript client that are made from it.
//!
//! The server makes the document; this only keeps it, so that a change of the API shows in a diff.
//! A unit test of the server fails while the copy differs. Must not edit it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catraca_conformance::{ProcessGuard, Repo, TestContext, binary, typescript};

const COPY: &str = "docs/openapi.json";
/// Building may take long; printing does not.
const PATIENCE: Duration = Duration::from_secs(1_200);

pub(crate) fn openapi(repo: &Repo) -> Result<()> {
    let processes = ProcessGuard::new(PATIENCE);
    let context = TestContext { repo, processes: &processes, factor: 1 };
    let binary = binary::build(&context)?;
    let printed = repo.command(&binary.display().to_string()).arg("openapi").output()?;
    ensure!(printed.status.success(), "catraca openapi: {}", printed.status);
    fs::write(repo.path(COPY), &printed.stdout).with_context(|| format!("cannot write {COPY}"))?;
    println!("{COPY}: {} KiB", printed.stdout.len() / 1024);
    typescript::write_types(&context).and(processes.sweep())
}
