//! The Python client: openapi-python-client, in an environment of its own.

use std::fs;

use anyhow::Result;

use super::ClientFolder;
use crate::packages;

/// Installs the generator and generates the client.
pub(super) const COMMANDS: &[&str] = &[
    "python3 -m venv venv",
    "venv/bin/pip install --quiet openapi-python-client==0.29.1",
    "venv/bin/openapi-python-client generate --path openapi.json --meta none \
     --output-path catraca_client",
];
const OUTPUT: &str = "catraca_client";

pub(super) fn run(folder: &ClientFolder) -> Result<()> {
    packages::need(folder.context, "python3", "python3-venv")?;
    folder.write("main.py", include_str!("main.py"))?;
    // The generator does not replace the client of an earlier run.
    let output = folder.path.join(OUTPUT);
    if output.exists() {
        fs::remove_dir_all(&output)?;
    }
    for command in COMMANDS {
        folder.run(command)?;
    }
    folder.run("venv/bin/python -m compileall -q catraca_client")?;
    folder.call_server("venv/bin/python main.py")
}
