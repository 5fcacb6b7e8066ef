//! `catraca test`: runs scenario files and shows where a decision is not the one that was expected.
//!
//! Must not know what a scenario says: the runner reads and plays it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use catraca_testkit::scenario::{Played, Report, ScenarioError, Suite, load};

use crate::args::Test;
use crate::exit::Exit;
use crate::render::{Outlet, Paint, count, counted, diagnostic, tell};

/// How many scenarios went which way, and how many files could not be run.
#[derive(Default)]
struct Score {
    passed: u64,
    failed: u64,
    malformed: u64,
}

/// Runs every file, also after one that is malformed.
pub fn run(args: &Test) -> Result<Exit> {
    let mut out = Outlet::stdout();
    let mut score = Score::default();
    for file in &args.files {
        match play(file) {
            Some(report) => print(&mut out, &report, &mut score)?,
            None => score.malformed += 1,
        }
    }
    writeln!(out, "{}", score.in_words(Paint::for_stdout()))?;
    Ok(score.exit())
}

/// Reads and plays one file; what is wrong with it goes to standard error.
fn play(file: &Path) -> Option<Report> {
    match load(file) {
        Ok(suite) => {
            mention(&suite);
            Some(suite.run())
        }
        Err(ScenarioError::Wrong(found)) => {
            for one in &found.all {
                tell(format_args!("{}\n", diagnostic::render(one, Paint::for_stderr())));
            }
            tell(format_args!("{}: not run", file.display()));
            None
        }
        Err(other) => {
            tell(format_args!("{other}"));
            None
        }
    }
}

/// Warnings are for `lint`; here it is enough to know that there are some. A catalog inside the
/// scenario itself is there to show something, so its warnings are meant.
fn mention(suite: &Suite) {
    let mut by_file: BTreeMap<&str, usize> = BTreeMap::new();
    for warning in suite.warnings.iter().filter(|warning| warning.file != suite.file) {
        *by_file.entry(&warning.file).or_default() += 1;
    }
    for (file, number) in by_file {
        let warnings = counted(number, "warning", "warnings");
        tell(format_args!("{file}: {warnings}; see `catraca lint {file}`"));
    }
}

fn print(out: &mut impl Write, report: &Report, score: &mut Score) -> Result<()> {
    let paint = Paint::for_stdout();
    writeln!(out, "{}", paint.strong(&report.file))?;
    for played in &report.scenarios {
        if played.passed {
            score.passed += 1;
            let steps = counted(played.steps, "step", "steps");
            let steps = format!("({steps})");
            writeln!(out, "  {}    {} {}", paint.good("ok"), played.name, paint.faint(&steps))?;
        } else {
            score.failed += 1;
            print_failure(out, paint, &report.file, played)?;
        }
    }
    writeln!(out)?;
    Ok(())
}

fn print_failure(out: &mut impl Write, paint: Paint, file: &str, played: &Played) -> Result<()> {
    writeln!(out, "  {}  {}", paint.bad("FAIL"), played.name)?;
    let Some(mismatch) = &played.mismatch else { return Ok(()) };
    write!(out, "        {file}:{}: step {} at {}", mismatch.line, mismatch.step, mismatch.at)?;
    match mismatch.repetition {
        (_, ..=1) => writeln!(out)?,
        (this, all) => writeln!(out, ", time {this} of {all}")?,
    }
    let width = mismatch.diff.iter().map(|one| one.path.chars().count()).max().unwrap_or(0);
    for one in &mismatch.diff {
        let (expected, got) = (paint.good(&one.expected), paint.bad(&one.got));
        writeln!(out, "          {:<width$}  expected {expected}, got {got}", one.path)?;
    }
    Ok(())
}

impl Score {
    fn in_words(&self, paint: Paint) -> String {
        let passed = format!("{} passed", count(self.passed));
        let failed = format!("{} failed", count(self.failed));
        let failed = if self.failed > 0 { paint.bad(&failed) } else { paint.strong(&failed) };
        let files = match self.malformed {
            0 => String::new(),
            number => format!(", {} not run", counted(number as usize, "file", "files")),
        };
        format!("{}, {failed}{files}", paint.strong(&passed))
    }

    fn exit(&self) -> Exit {
        if self.malformed > 0 {
            return Exit::Wrong;
        }
        Exit::yes_or(self.failed == 0, Exit::No)
    }
}
