//! schemathesis, in an environment of its own under `target/`.
//!
//! Set-up belongs to the run. Must not touch the machine's own Python packages.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::{TestContext, packages};

const HOME: &str = "target/schemathesis";
/// Pinned: another version makes other requests of the same seed.
const PACKAGE: &str = "schemathesis==4.32.5";

/// The path of the tool; installed if it is missing and the machine can.
pub(crate) fn need(context: &TestContext) -> Result<PathBuf> {
    let tool = context.repo.path(HOME).join("bin/schemathesis");
    if tool.is_file() {
        return Ok(tool);
    }
    let python = packages::need(context, "python3", "python3-venv")?;
    let help = || format!("install {PACKAGE} into {HOME} by hand and run this again");
    let mut make = context.repo.command(&python.display().to_string());
    context.processes.run(make.args(["-m", "venv", HOME])).with_context(help)?;
    let mut pip =
        context.repo.command(&context.repo.path(HOME).join("bin/pip").display().to_string());
    pip.args(["install", "--quiet", "--disable-pip-version-check", PACKAGE]);
    context.processes.run(&mut pip).with_context(help)?;
    Ok(tool)
}
