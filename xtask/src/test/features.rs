//! Each cargo feature of the library alone: it compiles without warnings, and a catalog that needs
//! another feature is refused with its name. The default features need few crates, the types at the
//! root have examples, these compile with the features that they require, the documentation shows
//! the types of std, and the migration from tower_governor runs.
//!
//! Uses the `dev` profile without debug information. Every feature has its own set of dependencies,
//! so little of what the other parts build could be used here, and code that is built for one short
//! test need not be optimized.

mod dependencies;
mod examples;
mod root_types;
mod std_times;

use std::process::Command;

use anyhow::{Context, Result};
use catraca_conformance::TestContext;

const MANIFEST: &str = "crates/catraca/Cargo.toml";

pub(crate) fn run(context: &TestContext) -> Result<()> {
    for feature in features(context)? {
        println!("feature {feature}");
        let mut clippy = cargo(context, "clippy", &["--no-default-features"]);
        clippy.args(["--features", &feature, "--", "-D", "warnings"]);
        context.processes.run(&mut clippy)?;
    }
    for features in ["default", "settle"] {
        let mut test = cargo(context, "test", &["--features", features]);
        context.processes.run(test.args(["--test", "missing_features"]))?;
    }
    dependencies::run(context)?;
    root_types::run(context)?;
    examples::run(context)?;
    std_times::run(context)?;
    run_migration(context)
}

/// Compiles and runs the migration from tower_governor in the guide, before and after. It is a
/// crate of its own, so that the lock file of the product does not contain tower_governor.
fn run_migration(context: &TestContext) -> Result<()> {
    let args = ["test", "--doc", "--manifest-path", "bench/layer/Cargo.toml", "--locked"];
    let mut cargo = context.repo.cargo(&args);
    cargo.env("RUSTDOCFLAGS", "-D warnings");
    // The target directory of the workspace, whose dependencies are built there already.
    cargo.arg("--target-dir").arg(context.repo.path("target"));
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "false").env("CARGO_INCREMENTAL", "0");
    context.processes.run(&mut cargo)
}

/// A cargo command for the library.
fn cargo(context: &TestContext, command: &str, args: &[&str]) -> Command {
    let mut cargo = context.repo.cargo(&[command, "-p", "catraca"]);
    cargo.args(args).env("CARGO_PROFILE_DEV_DEBUG", "false").env("CARGO_INCREMENTAL", "0");
    cargo
}

/// The features of the library, `default` included.
fn features(context: &TestContext) -> Result<Vec<String>> {
    let text = context.repo.read(MANIFEST)?;
    let manifest: toml::Table = text.parse().context("cannot parse a manifest")?;
    let features = manifest.get("features").and_then(toml::Value::as_table);
    let features = features.context("the library has no features")?;
    Ok(features.keys().cloned().collect())
}
