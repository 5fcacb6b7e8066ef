//! Measures every subject in processes of their own, in alternating rounds, and prints a table.

use std::process::Command;

use crate::subjects::Subject;

/// Requests per round, about half a second.
const TIMED_REQUESTS: u64 = 300_000;
/// Requests under callgrind. Two runs are compared, so that the start of the process cancels out.
const COUNTED_REQUESTS: u64 = 10_000;

/// Prints the table of all subjects.
pub fn run(rounds: usize) -> Result<(), String> {
    let mut times = vec![Vec::new(); Subject::ALL.len()];
    for round in 0..rounds.max(1) {
        let mut order: Vec<usize> = (0..Subject::ALL.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            times[index].push(time(Subject::ALL[index].1)?);
        }
    }
    println!("| Subject | ns per request | added | smallest to largest | added instructions |");
    println!("|---|---|---|---|---|");
    let bare = times[0].clone();
    let bare_instructions = instructions(Subject::ALL[0].1)?;
    for ((_, name), own) in Subject::ALL.iter().zip(&times) {
        // Within a round, so that a slower machine slows both.
        let added: Vec<f64> = own.iter().zip(&bare).map(|(own, bare)| own - bare).collect();
        let counted = instructions(name)?.zip(bare_instructions);
        let counted = counted.map_or("no valgrind".to_owned(), |(own, bare)| {
            format!("{}", own.saturating_sub(bare))
        });
        let (low, high) = range(&added);
        println!(
            "| `{name}` | {:.0} | {:.0} | {low:.0} to {high:.0} | {counted} |",
            median(own),
            median(&added)
        );
    }
    Ok(())
}

/// Nanoseconds per request of one subject.
fn time(subject: &str) -> Result<f64, String> {
    let output = own_command("")?.args(["time", subject, &TIMED_REQUESTS.to_string()]).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| format!("{subject}: {text}"))
}

/// Instructions per request of one subject; none without valgrind.
fn instructions(subject: &str) -> Result<Option<u64>, String> {
    let few = total_instructions(subject, COUNTED_REQUESTS)?;
    let many = total_instructions(subject, 2 * COUNTED_REQUESTS)?;
    Ok(few.zip(many).map(|(few, many)| many.saturating_sub(few) / COUNTED_REQUESTS))
}

fn total_instructions(subject: &str, requests: u64) -> Result<Option<u64>, String> {
    let valgrind = "valgrind --tool=callgrind --callgrind-out-file=/dev/null";
    let mut command = own_command(valgrind)?;
    let Ok(output) = command.args(["send", subject, &requests.to_string()]).output() else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find_map(|line| line.split_once("Collected :"));
    Ok(line.and_then(|(_, count)| count.trim().parse().ok()))
}

/// This program, under a wrapper if there is one.
fn own_command(wrapper: &str) -> Result<Command, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut words = wrapper.split_whitespace();
    let Some(first) = words.next() else { return Ok(Command::new(own)) };
    let mut command = Command::new(first);
    command.args(words).arg(own);
    Ok(command)
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn range(figures: &[f64]) -> (f64, f64) {
    let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let high = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (low, high)
}
