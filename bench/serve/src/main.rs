//! Measures a check over HTTP: catraca beside a peer, and beside bare servers that decide nothing.
//!
//! Without arguments it measures; `--proxy` measures the reverse proxy instead; `--floor` makes it
//! one of the bare servers. Must end every process that it starts, by its id.

mod args;
mod child;
mod conduct;
mod floors;
mod load;
mod proxies;
mod report;
mod servers;
mod soak;
mod stream;

use std::process::ExitCode;

use args::Order;

fn main() -> ExitCode {
    let done = args::read(std::env::args().skip(1)).and_then(|order| match order {
        Order::Help => {
            print!("{}", args::HELP);
            Ok(())
        }
        Order::Floor(kind, port) => floors::serve(&kind, port),
        Order::Conduct(plan) => conduct::run(&plan),
        Order::Soak(plan) => soak::run(&plan),
        Order::Proxies(plan) => proxies::run(&plan),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-serve: {error}");
            ExitCode::FAILURE
        }
    }
}
