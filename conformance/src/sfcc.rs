//! The cartridge for Salesforce B2C Commerce: runs its tests with Node and Chromium against the
//! built server, on fakes of that platform's API.
//!
//! Works in a copy below `target/`, because npm writes beside its files.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{Repo, TestContext, binary, packages};

/// The copy; it keeps the installed packages for the next run.
const HOME: &str = "target/sfcc";
const PACKAGE: &str = "sdk/sfcc";
const COPIED: [&str; 2] = ["sdk/sfcc/", "presets/soft-ban/"];
/// What a former run has left.
const STALE: [&str; 5] =
    ["sdk/sfcc/cartridges", "sdk/sfcc/example", "sdk/sfcc/metadata", "sdk/sfcc/test", "presets"];
const INSTALL: [&str; 5] =
    ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"];

/// Installs what the part needs.
pub fn set_up(context: &TestContext) -> Result<()> {
    packages::need(context, "node", "nodejs")?;
    packages::need(context, "npm", "npm")?;
    packages::need(context, "openssl", "openssl")?;
    packages::need(context, "chromium", "chromium")?;
    let home = context.repo.path(HOME);
    copy_sources(context.repo, &home)?;
    context.processes.run(&mut npm(context, &home.join(PACKAGE), &INSTALL))
}

/// The part `sfcc`.
pub fn run(context: &TestContext) -> Result<()> {
    set_up(context)?;
    let binary = binary::build(context)?;
    let home = context.repo.path(HOME);
    let mut test = npm(context, &home.join(PACKAGE), &["test"]);
    test.env("CATRACA_REPOSITORY", &home)
        .env("CATRACA_BIN", binary)
        .env("CHROMIUM", packages::need(context, "chromium", "chromium")?);
    context.processes.run(&mut test)
}

fn npm(context: &TestContext, folder: &Path, args: &[&str]) -> Command {
    let mut npm = context.repo.command("npm");
    npm.args(args).current_dir(folder).env("NO_COLOR", "1");
    npm
}

fn copy_sources(repo: &Repo, home: &Path) -> Result<()> {
    for folder in STALE.map(|folder| home.join(folder)) {
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
    }
    let files = repo.files()?;
    for file in files.iter().filter(|file| COPIED.iter().any(|start| file.starts_with(start))) {
        let target = home.join(file);
        fs::create_dir_all(target.parent().context("a file has no folder")?)?;
        fs::copy(repo.path(file), &target).with_context(|| format!("cannot copy {file}"))?;
    }
    Ok(())
}
