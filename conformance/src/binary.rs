//! Builds the `catraca` binary once and says where it is.
//!
//! Cargo is asked for the path, because a target directory may be anywhere. Must not run it.

use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{Scratch, TestContext};

/// The path of the freshly built binary under test.
pub fn build(context: &TestContext) -> Result<PathBuf> {
    // With a test beside it, cargo takes the dependencies that `unit` built.
    build_profile(context, "ci", &["--test", "server"])
}

/// The path of the freshly built binary of a package.
pub fn build_dist(context: &TestContext) -> Result<PathBuf> {
    build_profile(context, "dist", &[])
}

fn build_profile(context: &TestContext, profile: &str, beside: &[&str]) -> Result<PathBuf> {
    let scratch = Scratch::new("build")?;
    let messages = scratch.path().join("messages.json");
    let args = ["build", "--workspace", "--profile", profile, "--bin", "catraca"];
    let mut cargo = context.repo.cargo(&args);
    cargo
        .args(beside)
        .arg("--message-format=json-render-diagnostics")
        .stdout(File::create(&messages)?);
    let status = context.processes.status(&mut cargo)?;
    ensure!(status.success(), "cannot build catraca: {status}");
    let messages = fs::read_to_string(&messages)?;
    executable(&messages, "catraca").context("cargo built no binary named catraca")
}

/// The executable of a target, named in cargo's messages: one JSON object per line.
pub fn executable(messages: &str, target: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == target)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_comes_from_the_artifact_that_has_one() {
        let messages = r#"
            {"reason":"compiler-artifact","target":{"name":"catraca"},"executable":null}
            {"reason":"compiler-artifact","target":{"name":"other"},"executable":"/t/other"}
            {"reason":"compiler-artifact","target":{"name":"catraca"},"executable":"/t/catraca"}
            {"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages, "catraca"), Some(PathBuf::from("/t/catraca")));
        assert_eq!(executable("not json", "catraca"), None);
    }
}
