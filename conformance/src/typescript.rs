//! The TypeScript package: builds it, and runs its tests and the examples with Node, Deno, Bun
//! and Chromium against the built server.
//!
//! Works in a copy below `target/`, because npm and Next.js write beside their files. Must not
//! write into the checkout otherwise.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{Repo, TestContext, binary, packages};

/// The copy; it keeps the installed packages for the next run.
const HOME: &str = "target/typescript";
const PACKAGE: &str = "sdk/typescript";
/// Made from the OpenAPI document; a test of the package fails while it differs.
const TYPES: &str = "sdk/typescript/src/generated/api.ts";
/// Node 18 and Bun, for the smoke tests.
const RUNTIMES: &str = "sdk/typescript/runtimes";
/// What the package and its tests read.
const COPIED: [&str; 8] = [
    "sdk/typescript/",
    "sdk/testdata/",
    "examples/",
    "crates/catraca/examples/",
    "presets/",
    "docs/guide/",
    "docs/openapi.json",
    "llms.txt",
];
/// What a former run has left.
const STALE: [&str; 9] = [
    "sdk/typescript/src",
    "sdk/typescript/test",
    "sdk/typescript/dist",
    "sdk/typescript/test-build",
    "sdk/testdata",
    "examples",
    "crates",
    "presets",
    "docs",
];
/// The versions of the lock file. Dependencies run no code when they are installed, and packages
/// for other machines may be missing in a registry, which `npm ci` does not accept.
const INSTALL: [&str; 5] =
    ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"];

/// Installs what the part needs.
pub fn set_up(context: &TestContext) -> Result<()> {
    packages::need(context, "node", "nodejs")?;
    packages::need(context, "npm", "npm")?;
    // The limiters that the guide about migrations replaces count in it.
    packages::need(context, "redis-server", "redis-server")?;
    // Of the example `booking`.
    packages::need(context, "python3", "python3")?;
    find_chromium(context)?;
    let home = context.repo.path(HOME);
    copy_sources(context.repo, &home)?;
    context.processes.run(&mut npm(context, &home.join(PACKAGE), &INSTALL))?;
    context.processes.run(&mut npm(context, &home.join(RUNTIMES), &INSTALL))
}

/// The part `typescript`.
pub fn run(context: &TestContext) -> Result<()> {
    set_up(context)?;
    let chromium = find_chromium(context)?;
    let binary = binary::build(context)?;
    let home = context.repo.path(HOME);
    let mut test = npm(context, &home.join(PACKAGE), &["test"]);
    test.env("CATRACA_REPOSITORY", &home)
        .env("CATRACA_BIN", binary)
        .env("CHROMIUM", chromium)
        .env("NEXT_TELEMETRY_DISABLED", "1");
    context.processes.run(&mut test)
}

/// Writes the types of the client again, from the OpenAPI document.
pub fn write_types(context: &TestContext) -> Result<()> {
    packages::need(context, "node", "nodejs")?;
    packages::need(context, "npm", "npm")?;
    let home = context.repo.path(HOME);
    copy_sources(context.repo, &home)?;
    context.processes.run(&mut npm(context, &home.join(PACKAGE), &INSTALL))?;
    context.processes.run(&mut npm(context, &home.join(PACKAGE), &["run", "generate"]))?;
    fs::copy(home.join(TYPES), context.repo.path(TYPES))
        .with_context(|| format!("cannot write {TYPES}"))?;
    println!("{TYPES}");
    Ok(())
}

fn find_chromium(context: &TestContext) -> Result<PathBuf> {
    packages::need(context, "chromium", "chromium")
}

/// npm in a folder of the copy.
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
        let folder = target.parent().context("a file has no folder")?;
        fs::create_dir_all(folder)?;
        fs::copy(repo.path(file), &target).with_context(|| format!("cannot copy {file}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    #[test]
    fn the_copy_has_what_the_package_reads_and_nothing_of_a_former_run() {
        let scratch = Scratch::new("typescript").unwrap();
        let stale = scratch.path().join("sdk/typescript/test/gone.test.ts");
        fs::create_dir_all(stale.parent().unwrap()).unwrap();
        fs::write(&stale, "").unwrap();
        copy_sources(&Repo::open().unwrap(), scratch.path()).unwrap();
        assert!(!stale.exists());
        for file in [
            "sdk/typescript/.npmrc",
            "sdk/typescript/package-lock.json",
            "sdk/typescript/test/support/server.ts",
            "examples/nextjs/app/api/appointments/route.ts",
            "presets/checkout/catalog.toml",
            "docs/openapi.json",
            "docs/guide/clients.md",
            "llms.txt",
            "sdk/testdata/headers.json",
            "sdk/typescript/runtimes/package-lock.json",
        ] {
            assert!(scratch.path().join(file).is_file(), "{file}");
        }
    }
}
