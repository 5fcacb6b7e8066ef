//! Measures a decision on Redis: catraca's script beside bare ones on the same server.
//!
//! Every subject is the same driver sending prepared commands, so that only what the server does
//! differs. Must end the server that it starts, by its id.

mod args;
mod conduct;
mod load;
mod machine;
mod memory;
mod report;
mod subjects;

use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match args::read(std::env::args().skip(1)) {
        Ok(Some(plan)) => conduct::run(&plan),
        Ok(None) => {
            print!("{}", args::HELP);
            Ok(())
        }
        Err(error) => Err(error),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-store: {error}");
            ExitCode::FAILURE
        }
    }
}
