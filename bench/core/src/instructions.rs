//! Counts the instructions of a decision under callgrind. They repeat where times do not: other
//! processes do not change them. They do not show cache misses or waiting.

use std::process::Command;

use crate::args::{DECIDE, Plan};
use crate::measure::Decide;
use crate::registry::{self, Entry, Role};

/// Decisions of the shorter run. The longer one makes twice as many, and the difference leaves out
/// the start of the process and the insertion of the keys.
const DECISIONS: u64 = 10_000;

/// Prints the instructions of each selected subject.
pub fn run(subjects: &[&Entry], plan: &Plan) -> Result<(), String> {
    let decisions = if plan.quick { DECISIONS / 10 } else { DECISIONS };
    println!("| subject | instructions per decision |");
    println!("|---|---:|");
    // Under valgrind the product's clock cannot be read; its subjects get one that does not move.
    let is_counted = |entry: &&&Entry| entry.role != Role::Windows && entry.name != "clock";
    for entry in subjects.iter().filter(is_counted) {
        let few = total(entry.name, decisions)?;
        let many = total(entry.name, 2 * decisions)?;
        println!("| {} | {} |", entry.name, many.saturating_sub(few) / decisions);
    }
    Ok(())
}

/// Makes the decisions of one run: what a child does.
pub fn decide_here(subject: &str, decisions: u64) -> Result<(), String> {
    let done = registry::run(subject, Decide { decisions });
    done.map(drop).ok_or(format!("no subject {subject:?}"))
}

/// All instructions of a process that makes this many decisions.
fn total(subject: &str, decisions: u64) -> Result<u64, String> {
    let own = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(own);
    command.args([DECIDE, subject, &decisions.to_string()]);
    let output = command.output().map_err(|error| format!("valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let count = text.lines().find_map(|line| line.split_once("Collected :"));
    let count = count.and_then(|(_, count)| count.trim().parse().ok());
    count.filter(|_| output.status.success()).ok_or(format!("{subject} under valgrind: {text}"))
}
