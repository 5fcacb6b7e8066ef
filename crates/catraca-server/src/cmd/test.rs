//! `catraca test`: runs scenario files and prints decisions that differ from the expected ones.
//!
//! `catraca-replay` parses and runs scenarios; this file prints its reports.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use catraca::LoadError;
use catraca_core::catalog::diagnostic::Diagnostic;
use catraca_replay::scenario::{CatalogFile, Report, ScenarioError, ScenarioResult, Suite, load};

use crate::args::TestArgs;
use crate::config;
use crate::exit::Exit;
use crate::render::{Paint, StdoutPipe, count, count_noun, diagnostic, eprint_line};

/// Numbers of scenarios by result, and of files that could not be run.
#[derive(Default)]
struct TestTotals {
    passed: u64,
    failed: u64,
    malformed: u64,
}

/// Runs every file; a malformed one does not stop the run.
pub fn run(args: &TestArgs) -> Result<Exit> {
    let mut out = StdoutPipe::stdout();
    let mut totals = TestTotals::default();
    for file in &args.files {
        match run_file(file) {
            Some(report) => print(&mut out, &report, &mut totals)?,
            None => totals.malformed += 1,
        }
    }
    writeln!(out, "{}", totals.to_text(Paint::for_stdout()))?;
    Ok(totals.exit())
}

/// Loads and runs one file; prints its errors to standard error.
fn run_file(file: &Path) -> Option<Report> {
    match load(file) {
        Ok(suite) => {
            print_warning_counts(&suite);
            let errors = process_errors(&suite);
            if errors.is_empty() {
                return Some(suite.run());
            }
            refuse(file, &errors);
            None
        }
        Err(ScenarioError::Invalid(diagnostics)) => {
            refuse(file, &diagnostics.all);
            None
        }
        Err(other) => {
            eprint_line(format_args!("{other}"));
            None
        }
    }
}

/// Prints why a scenario file is not run.
fn refuse(file: &Path, errors: &[Diagnostic]) {
    for error in errors {
        eprint_line(format_args!("{}\n", diagnostic::render(error, Paint::for_stderr())));
    }
    eprint_line(format_args!("{}: not run", file.display()));
}

/// The errors in the sections about the process of the catalogs: `lint` and a start would refuse
/// them, though no scenario reads them.
fn process_errors(suite: &Suite) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for CatalogFile { path, variables } in &suite.catalogs {
        let read = config::load_with(path, &|name| variables.get(name).cloned());
        let Err(LoadError::Invalid(diagnostics)) = read else { continue };
        for error in diagnostics.errors() {
            if !found.contains(error) {
                found.push(error.clone());
            }
        }
    }
    found
}

/// Prints the number of warnings of each catalog; `lint` prints them in full. Warnings of a
/// catalog inside the scenario file are skipped: such catalogs often show a mistake on purpose.
fn print_warning_counts(suite: &Suite) {
    let mut by_file: BTreeMap<&str, usize> = BTreeMap::new();
    for warning in suite.warnings.iter().filter(|warning| warning.file != suite.file) {
        *by_file.entry(&warning.file).or_default() += 1;
    }
    for (file, number) in by_file {
        let warnings = count_noun(number, "warning", "warnings");
        eprint_line(format_args!("{file}: {warnings}; see `catraca lint {file}`"));
    }
}

fn print(out: &mut impl Write, report: &Report, totals: &mut TestTotals) -> Result<()> {
    let paint = Paint::for_stdout();
    writeln!(out, "{}", paint.strong(&report.file))?;
    for played in &report.scenarios {
        if played.passed {
            totals.passed += 1;
            let steps = count_noun(played.steps, "step", "steps");
            let steps = format!("({steps})");
            writeln!(out, "  {}    {} {}", paint.good("ok"), played.name, paint.faint(&steps))?;
        } else {
            totals.failed += 1;
            print_failure(out, paint, &report.file, played)?;
        }
    }
    writeln!(out)?;
    Ok(())
}

fn print_failure(
    out: &mut impl Write,
    paint: Paint,
    file: &str,
    played: &ScenarioResult,
) -> Result<()> {
    writeln!(out, "  {}  {}", paint.bad("FAIL"), played.name)?;
    let Some(mismatch) = &played.mismatch else { return Ok(()) };
    write!(out, "        {file}:{}: step {} at {}", mismatch.line, mismatch.step, mismatch.at)?;
    match mismatch.repetition {
        (_, ..=1) => writeln!(out)?,
        (this, all) => writeln!(out, ", time {this} of {all}")?,
    }
    let width = mismatch.diff.iter().map(|one| one.path.chars().count()).max().unwrap_or(0);
    for one in &mismatch.diff {
        let expected = paint.good(&one.expected);
        let got = paint.bad(&one.got);
        writeln!(out, "          {:<width$}  expected {expected}, got {got}", one.path)?;
    }
    Ok(())
}

impl TestTotals {
    fn to_text(&self, paint: Paint) -> String {
        let passed = format!("{} passed", count(self.passed));
        let failed = format!("{} failed", count(self.failed));
        let failed = if self.failed > 0 { paint.bad(&failed) } else { paint.strong(&failed) };
        let files = match self.malformed {
            0 => String::new(),
            number => format!(", {} not run", count_noun(number as usize, "file", "files")),
        };
        format!("{}, {failed}{files}", paint.strong(&passed))
    }

    fn exit(&self) -> Exit {
        if self.malformed > 0 {
            return Exit::BadInput;
        }
        Exit::yes_or(self.failed == 0, Exit::No)
    }
}
