//! `cargo xtask faults [--write] [NAME]`: faults of the store under whole servers with load.
//!
//! The cases are tests in `conformance/tests/store_faults`; this builds the server, runs them one
//! after the other, and with `--write` replaces their rows in `docs/guarantees.md`. A case fails if
//! it exceeds a bound, and its row is not written. The test run without `--deep` has a few cases,
//! whose bounds of time are those of a slow machine.

mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::{ProcessGuard, Repo, TestContext, binary, packages};

/// For the task on its own, with the build.
const LIMIT: Duration = Duration::from_secs(7_200);
/// Where the rows are, one line of JSON for each case.
const REPORT: &str = "target/faults.jsonl";
const DOCUMENT: &str = "docs/guarantees.md";
/// The columns of figures in the table of the document. A cell has a figure, and its bound in
/// parentheses.
pub const COLUMNS: [&str; 13] = [
    "Over the limit",
    "In all",
    "Exact",
    "Late",
    "Degraded",
    "Until",
    "Locks refused",
    "Two holders",
    "Acts acknowledged",
    "Acts count",
    "Longest answer",
    "Checks/s",
    "Besides",
];
/// The cases of a normal test run: a planned failover, a split, and three servers that die.
const FEW: [&str; 5] = [
    "sentinel_failover",
    "sentinel_split",
    "cluster_kill",
    "postgres_failover",
    "records_failover",
];

/// How the cases judge times.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeBounds {
    Strict,
    /// As on a machine that other work makes slow.
    Generous,
}

/// `cargo xtask faults [--write] [NAME...]`
pub fn command(repo: &Repo, args: &[String]) -> Result<()> {
    let (flags, names): (Vec<&String>, Vec<&String>) =
        args.iter().partition(|arg| arg.starts_with('-'));
    if let Some(flag) = flags.iter().find(|flag| **flag != "--write") {
        bail!("unknown flag `{flag}`; there is only --write");
    }
    let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    let processes = ProcessGuard::new(LIMIT);
    let context = TestContext { repo, processes: &processes, factor: 1 };
    let ran = run_cases(&context, &names, TimeBounds::Strict);
    let swept = processes.sweep();
    if !flags.is_empty() {
        let document = repo.path(DOCUMENT);
        let rows = fs::read_to_string(report(repo))?;
        let text = table::replace_rows(&repo.read(DOCUMENT)?, &rows)?;
        fs::write(document, text)?;
    }
    ran.and(swept)
}

/// The `faults` part: a few cases, or all in a deep run.
pub fn run(context: &TestContext) -> Result<()> {
    match context.factor {
        0 | 1 => run_cases(context, &FEW, TimeBounds::Generous),
        _ => run_cases(context, &[], TimeBounds::Strict),
    }
}

/// Installs what the cases need.
pub fn set_up(context: &TestContext) -> Result<()> {
    programs(context).map(drop)
}

fn report(repo: &Repo) -> PathBuf {
    repo.path(REPORT)
}

fn programs(context: &TestContext) -> Result<[(&'static str, PathBuf); 3]> {
    Ok([
        ("CATRACA_REDIS_SERVER", packages::need(context, "redis-server", "redis-server")?),
        ("CATRACA_POSTGRES_BIN", packages::postgres(context)?),
        ("CATRACA_PGBOUNCER", packages::need(context, "pgbouncer", "pgbouncer")?),
    ])
}

fn run_cases(context: &TestContext, names: &[&str], times: TimeBounds) -> Result<()> {
    let programs = programs(context)?;
    let server = binary::build(context)?;
    let report = report(context.repo);
    remove(&report)?;
    let args = ["test", "--workspace", "--profile", "ci", "--test", "store_faults", "--"];
    let mut cargo = context.repo.cargo(&args);
    // One after the other, because they measure how long callers wait.
    cargo.args(["--test-threads", "1", "--nocapture", "--skip", "tests::"]).args(names);
    cargo.envs(programs).env("CATRACA_FAULTS_SERVER", server);
    if times == TimeBounds::Generous {
        cargo.env("CATRACA_FAULTS_GENEROUS", "1");
    }
    let ran = context.processes.run(cargo.env("CATRACA_FAULTS_REPORT", &report));
    let rows = fs::read_to_string(&report).unwrap_or_default();
    print!("\n{}", table::summary(&rows)?);
    ensure!(!rows.is_empty() || ran.is_err(), "no case is named `{}`", names.join(" "));
    ran
}

fn remove(file: &Path) -> Result<()> {
    if file.exists() {
        fs::remove_file(file).with_context(|| file.display().to_string())?;
    }
    Ok(())
}
