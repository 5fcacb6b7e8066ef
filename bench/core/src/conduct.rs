//! Runs the rounds: one child process per (subject, case), all subjects of a case side by side.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::args::{CHILD, Job, Plan};
use crate::case::Case;
use crate::instructions;
use crate::registry::{self, Entry, SUBJECTS};
use crate::report;
use crate::results::{Figures, Results, Row};

/// Runs a whole plan and reports it.
pub fn run(plan: &Plan) -> Result<(), String> {
    let cases = cases(plan);
    let subjects = subjects(plan);
    if plan.list {
        subjects.iter().for_each(|subject| println!("subject {}", subject.name));
        cases.iter().for_each(|case| println!("case {}", case.name()));
        return Ok(());
    }
    if plan.instructions {
        return instructions::run(&subjects, plan);
    }
    let mut sink = Sink::open(plan.json.as_deref())?;
    let mut results = Results::default();
    for round in 0..plan.rounds {
        results.rounds = round + 1;
        for case in &cases {
            let rows = side_by_side(plan, round, *case, &subjects)?;
            rows.iter().try_for_each(|row| sink.write(row))?;
            results.rows.extend(rows);
        }
    }
    if !sink.replaces_tables() {
        print!("{}", report::write(&results, plan.quick));
    }
    Ok(())
}

/// Measures one job in this process and prints its figures: what a child does.
pub fn measure_here(job: &Job) -> Result<(), String> {
    let entry = registry::entry(&job.subject).ok_or(format!("no subject {:?}", job.subject))?;
    let case = Case::from_name(&job.case).ok_or(format!("no case {:?}", job.case))?;
    let figures = registry::measure(entry, case, job.quick);
    print!("{}", figures.ok_or(format!("{} has no {}", job.subject, job.case))?.to_lines());
    Ok(())
}

fn cases(plan: &Plan) -> Vec<Case> {
    Case::all().into_iter().filter(|case| is_selected(&plan.cases, &case.name())).collect()
}

fn subjects(plan: &Plan) -> Vec<&'static Entry> {
    SUBJECTS.iter().filter(|entry| is_selected(&plan.only, entry.name)).collect()
}

fn is_selected(prefixes: &[String], name: &str) -> bool {
    prefixes.is_empty() || prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
}

/// One case of one round. Every second round walks the subjects backwards, so that a drift of the
/// machine does not always favour the same end.
fn side_by_side(
    plan: &Plan,
    round: usize,
    case: Case,
    subjects: &[&'static Entry],
) -> Result<Vec<Row>, String> {
    let mut order: Vec<_> = subjects.iter().filter(|entry| entry.applies(case)).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    eprintln!("round {}/{}: {}", round + 1, plan.rounds, case.name());
    let row = |entry: &&&'static Entry| {
        let figures = child(entry.name, &case.name(), plan.quick)?;
        Ok(Row { round, subject: entry.name, case: case.name(), figures })
    };
    order.iter().map(row).collect()
}

/// Re-executes this program for one measurement.
fn child(subject: &str, case: &str, quick: bool) -> Result<Figures, String> {
    let own = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
    let pace = if quick { "quick" } else { "full" };
    let mut command = Command::new(own);
    command.args([CHILD, subject, case, pace]).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("child process: {error}"))?;
    if !output.status.success() {
        return Err(format!("{subject} failed in {case}: {}", output.status));
    }
    Figures::from_lines(&String::from_utf8_lossy(&output.stdout))
}

/// Where JSON lines go.
enum Sink {
    Nowhere,
    Stdout,
    File(File),
}

impl Sink {
    fn open(path: Option<&str>) -> Result<Sink, String> {
        Ok(match path {
            None => Sink::Nowhere,
            Some("-") => Sink::Stdout,
            Some(path) => Sink::File(File::create(path).map_err(|e| format!("{path}: {e}"))?),
        })
    }

    fn write(&mut self, row: &Row) -> Result<(), String> {
        match self {
            Sink::Nowhere => Ok(()),
            Sink::Stdout => writeln!(std::io::stdout(), "{}", row.to_json()),
            Sink::File(file) => writeln!(file, "{}", row.to_json()),
        }
        .map_err(|error| format!("writing JSON: {error}"))
    }

    fn replaces_tables(&self) -> bool {
        matches!(self, Sink::Stdout)
    }
}
