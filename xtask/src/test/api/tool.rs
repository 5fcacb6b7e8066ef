//! schemathesis, in an environment of its own under `target/`.
//!
//! Set-up belongs to the run. Must not touch the machine's own Python packages.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::super::Room;
use crate::packages;

const HOME: &str = "target/schemathesis";
/// Pinned: another version makes other requests of the same seed.
const PACKAGE: &str = "schemathesis==4.32.5";

/// The path of the tool; installed if it is missing and the machine can.
pub(crate) fn need(room: &Room) -> Result<PathBuf> {
    let tool = room.repo.path(HOME).join("bin/schemathesis");
    if tool.is_file() {
        return Ok(tool);
    }
    let python = packages::need(room, "python3", "python3-venv")?;
    let help = || format!("install {PACKAGE} into {HOME} by hand and run this again");
    let mut make = room.repo.command(&python.display().to_string());
    room.leash.run(make.args(["-m", "venv", HOME])).with_context(help)?;
    let mut pip = room.repo.command(&room.repo.path(HOME).join("bin/pip").display().to_string());
    pip.args(["install", "--quiet", "--disable-pip-version-check", PACKAGE]);
    room.leash.run(&mut pip).with_context(help)?;
    Ok(tool)
}
