//! Measures what a layer adds to a request of an in-memory service: nanoseconds, and instructions
//! under callgrind.
//!
//! Started plainly it re-executes itself once per subject and round, so that no subject inherits
//! another's heap, and prints a table.

mod conduct;
mod measure;
mod subjects;

use std::process::ExitCode;

use measure::Mode;
use subjects::Subject;

const HELP: &str = "\
cargo xtask bench layer [ROUNDS]             a table of all subjects; 9 rounds
cargo xtask bench layer time SUBJECT N       N requests of one subject, in ns per request
cargo xtask bench layer send SUBJECT N       the same without a clock, to count instructions
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [] => conduct::run(9),
        ["time", subject, requests] => time_one(subject, requests),
        ["send", subject, requests] => send_one(subject, requests),
        [rounds] => rounds.parse().map_err(|_| HELP.to_owned()).and_then(conduct::run),
        _ => Err(HELP.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-layer: {message}");
            ExitCode::from(2)
        }
    }
}

fn time_one(subject: &str, requests: &str) -> Result<(), String> {
    let (subject, requests) = read_order(subject, requests)?;
    println!("{}", subject.run(Mode::Time, requests));
    Ok(())
}

fn send_one(subject: &str, requests: &str) -> Result<(), String> {
    let (subject, requests) = read_order(subject, requests)?;
    subject.run(Mode::Send, requests);
    Ok(())
}

fn read_order(subject: &str, requests: &str) -> Result<(Subject, u64), String> {
    let subject = Subject::from_name(subject).ok_or(HELP)?;
    Ok((subject, requests.parse().map_err(|_| HELP)?))
}
