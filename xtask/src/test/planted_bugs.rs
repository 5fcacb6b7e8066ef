//! Plants known bugs in a copy of the sources and enables one at a time: the tests that the table
//! names must fail then.
//!
//! A bug that a test does not notice means that the tests have become weaker. The same tests run
//! without a bug first, because a test that always fails would notice everything.

mod table;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use catraca_conformance::{Repo, TestContext, binary};

use crate::change_switch;
use crate::source_copy::SourceCopy;
use table::PlantedBug;

const TABLE: &str = "crates/catraca-testkit/planted_bugs.toml";
/// The target of the test kit with all tests that the table names.
const TARGET: &str = "rules";
/// Decisions that the oracle compares before a bug counts as missed.
const DECISIONS: &str = "1000000";

pub(crate) fn run(context: &TestContext) -> Result<()> {
    let bugs = read_table(context.repo)?;
    let copy = SourceCopy::write(context.repo, "planted-bugs", |file, text| {
        Ok(change_switch::add_to(file, table::plant(&bugs, file, &text)?))
    })?;
    let runner = TestRunner { context, executable: build(context, &copy)?, copy };
    for test in tests_of(&bugs) {
        runner.ensure_passes(test)?;
    }
    let mut missed = Vec::new();
    for (index, bug) in bugs.iter().enumerate() {
        for test in &bug.noticed_by {
            let began = Instant::now();
            let noticed = !runner.passes(test, Some(index))?;
            let verdict = if noticed { "noticed" } else { "MISSED" };
            let seconds = began.elapsed().as_secs_f64();
            println!("{verdict} {seconds:5.1} s  {} by {test}", bug.name);
            if !noticed {
                missed.push(format!("{} ({}) by {test}", bug.name, bug.what));
            }
        }
    }
    ensure!(missed.is_empty(), "not noticed: {}", missed.join("; "));
    println!("{} bugs, all noticed", bugs.len());
    Ok(())
}

fn read_table(repo: &Repo) -> Result<Vec<PlantedBug>> {
    table::parse(&repo.read(TABLE)?).with_context(|| format!("cannot read {TABLE}"))
}

/// All tests that the table names, each once.
fn tests_of(bugs: &[PlantedBug]) -> BTreeSet<&str> {
    bugs.iter().flat_map(|bug| &bug.noticed_by).map(String::as_str).collect()
}

/// Builds the tests with all bugs in them. Returns the executable.
fn build(context: &TestContext, copy: &SourceCopy) -> Result<PathBuf> {
    let messages = copy.root().join("messages.json");
    // The whole workspace, so that the dependencies which `unit` built are used again.
    let args = ["test", "--locked", "--workspace", "--profile", "ci", "--no-run", "--test", TARGET];
    let mut cargo = copy.cargo(context.repo, &args);
    cargo.arg("--message-format=json-render-diagnostics").stdout(File::create(&messages)?);
    context.processes.run(&mut cargo).context("a planted bug may not compile")?;
    let executable = binary::executable(&fs::read_to_string(&messages)?, TARGET);
    executable.with_context(|| format!("cargo built no test {TARGET}"))
}

/// Runs single tests of the copy.
struct TestRunner<'a> {
    context: &'a TestContext<'a>,
    executable: PathBuf,
    copy: SourceCopy,
}

impl TestRunner<'_> {
    /// Fails unless the test runs and passes without a bug.
    fn ensure_passes(&self, test: &str) -> Result<()> {
        ensure!(self.passes(test, None)?, "{test} fails without a bug: {}", self.log().display());
        let output = fs::read_to_string(self.log())?;
        let ran = output.contains("test result: ok. 1 passed");
        ensure!(ran, "there is no test {test}");
        println!("passes without a bug: {test}");
        Ok(())
    }

    /// Whether a test passes with this bug enabled, or with none.
    fn passes(&self, test: &str, bug: Option<usize>) -> Result<bool> {
        let log = File::create(self.log())?;
        let mut command = self.context.repo.command(&self.executable.display().to_string());
        command.args([test, "--exact"]).stderr(log.try_clone()?).stdout(log);
        // The default seeds of the tests: every run plants into the same traces.
        command.env_remove("CATRACA_SEED").env("CATRACA_ORACLE_DECISIONS", DECISIONS);
        command.env(change_switch::SWITCH, bug.map_or_else(String::new, |index| index.to_string()));
        Ok(self.context.processes.status(&mut command)?.success())
    }

    /// The output of the last test.
    fn log(&self) -> PathBuf {
        self.copy.root().join("test.log")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edit_of_the_table_fits_the_sources() {
        let repo = Repo::open().unwrap();
        let bugs = read_table(&repo).unwrap();
        let files: BTreeSet<String> =
            bugs.iter().flat_map(|bug| &bug.edits).map(|edit| edit.path()).collect();
        for file in files {
            let text = repo.read(&file).unwrap();
            assert_ne!(table::plant(&bugs, &file, &text).unwrap(), text, "{file}");
        }
    }
}
