//! Measures one decision, and one stored key, of catraca beside its peers and bare-map floors.
//!
//! Started plainly it is the *conductor*: it re-executes itself once per (subject, case), so that
//! no subject inherits another's heap, and prints tables. It must never measure in its own process.

mod args;
mod case;
mod conduct;
mod decision_json;
mod floors;
mod instructions;
mod keys;
mod machine;
mod measure;
mod ours;
mod parts;
mod peers;
mod registry;
mod report;
mod results;
mod subject;

use std::process::ExitCode;

use args::Order;

fn main() -> ExitCode {
    let outcome = match args::read(std::env::args().skip(1)) {
        Ok(Order::Help) => {
            print!("{}", args::HELP);
            Ok(())
        }
        Ok(Order::Decide { subject, decisions }) => instructions::decide_here(&subject, decisions),
        Ok(Order::Measure(job)) => conduct::measure_here(&job),
        Ok(Order::Conduct(plan)) => conduct::run(&plan),
        Err(message) => Err(message),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-core: {message}");
            ExitCode::from(2)
        }
    }
}
