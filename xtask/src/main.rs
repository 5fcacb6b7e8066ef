//! `cargo xtask`: the only automation of the project.
//!
//! It exists so that one command means the same on every machine. It must not depend on a crate of
//! the product: it judges them from outside, and has to run while they do not compile.

mod bench;
mod change_switch;
mod docs_tables;
mod licences;
mod mutants;
mod openapi;
mod requirements;
mod source_copy;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};
use catraca_conformance::{Repo, demos, docs, faults, screenshots};

const USAGE: &str = "\
cargo xtask test [--deep] [PART...]   set up and run everything, or only the named parts
cargo xtask setup [PART...]           install what the parts of the test run need
cargo xtask trace [--list]            which requirements have a test; --list names those without
cargo xtask tidy                      sizes, module docs, banned words, dependency direction
cargo xtask licences                  every dependency's licence against deny.toml
cargo xtask mutants [--sample N] [--seed SEED]
                                      how many random mutants of the rules the tests catch
cargo xtask docs [FILE...]            run the console blocks of the documentation
cargo xtask demo NAME                 a preset behind the proxy, shown by real requests: soft-ban,
                                      dict, window-block, checkout, booking or llm-budget
cargo xtask faults [--write] [NAME...]
                                      faults of the store under three servers with load, or only
                                      those with these names; --write updates docs/guarantees.md
cargo xtask docs-tables               write the tables of settings in the guide
cargo xtask openapi                   replace docs/openapi.json
cargo xtask screenshots               replace the pictures in docs/images
cargo xtask bench NAME [ARG...]       run the benchmark in bench/NAME, or `simulate [LINES]`";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let Some((verb, rest)) = args.split_first() else { bail!("which task?\n\n{USAGE}") };
    let repo = Repo::open()?;
    match verb.as_str() {
        "test" => test::test(&repo, rest),
        "setup" => test::set_up(&repo, rest),
        "trace" => requirements::command(&repo, rest),
        "tidy" => no_arguments(rest).and_then(|()| tidy::tidy(&repo)),
        "licences" => no_arguments(rest).and_then(|()| licences::licences(&repo)),
        "mutants" => mutants::command(&repo, rest),
        "docs" => docs::command(&repo, rest),
        "faults" => faults::command(&repo, rest),
        "demo" => demos::command(&repo, rest),
        "docs-tables" => no_arguments(rest).and_then(|()| docs_tables::docs_tables(&repo)),
        "openapi" => no_arguments(rest).and_then(|()| openapi::openapi(&repo)),
        "screenshots" => no_arguments(rest).and_then(|()| screenshots::update(&repo)),
        "bench" => bench::bench(&repo, rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        other => bail!("unknown task `{other}`\n\n{USAGE}"),
    }
}

fn no_arguments(rest: &[String]) -> Result<()> {
    match rest.first() {
        Some(extra) => bail!("unexpected argument `{extra}`\n\n{USAGE}"),
        None => Ok(()),
    }
}
