//! A release binary that serves a catalog, ended with the value.
//!
//! Must listen on loopback alone.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

pub(super) struct Served {
    child: Child,
    pub(super) address: String,
}

impl Served {
    pub(super) fn start(binary: &Path, folder: &Path, catalog: &str) -> Result<Self> {
        fs::write(folder.join("catalog.toml"), catalog)?;
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--config", "catalog.toml"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut line = String::new();
        let out = child.stdout.take().context("no output")?;
        BufReader::new(out).read_line(&mut line)?;
        let address = line.trim().rsplit_once("http://").map(|(_, address)| address.to_owned());
        let served = Self { child, address: address.unwrap_or_default() };
        ensure!(!served.address.is_empty(), "it did not start: {line}");
        Ok(served)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended already, or must now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
