//! The program `catraca` as a library, so that its documentation does not collide with that of the
//! library `catraca`. `main` reads the command line, runs one verb and returns its exit code.
//!
//! Each verb is implemented by a file in `cmd`; an error becomes one line on standard error.

mod args;
mod client;
mod cmd;
mod exit;
mod html;
mod http;
mod observe;
mod regular_file;
mod reload;
mod render;
mod shared_store;

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::Parser;

use args::{CliArgs, CliVerb, ServeArgs};
use exit::Exit;
use render::{StdoutError, eprint_line};

/// Runs the verb of the command line.
pub fn main() -> ExitCode {
    let args = CliArgs::parse();
    match run(&args) {
        Ok(exit) => exit.into(),
        // `simulate` writes to standard output directly and may read an endless history: it stops
        // when the reader of its output closes the pipe, as `head` does.
        Err(error) if is_closed_pipe(&error) => Exit::Yes.into(),
        Err(error) => {
            eprint_line(format_args!("catraca: {error:#}"));
            exit_code(&error).into()
        }
    }
}

fn exit_code(error: &anyhow::Error) -> Exit {
    if StdoutError::is_cause_of(error) {
        return Exit::OutputFailed;
    }
    error.downcast_ref().map_or(Exit::BadInput, client::ClientError::exit)
}

fn run(args: &CliArgs) -> anyhow::Result<Exit> {
    // Before any verb asks for the secret, which would then be random.
    args.secret_file().map_or(Ok(()), cmd::secret::set_from_file)?;
    match &args.verb {
        Some(CliVerb::Lint(args)) => cmd::lint::run(args),
        Some(CliVerb::Test(args)) => cmd::test::run(args),
        Some(CliVerb::Explain(args)) => cmd::explain::run(args),
        Some(CliVerb::Simulate(args)) => cmd::simulate::run(args),
        Some(CliVerb::Serve(args)) => cmd::serve::run(args),
        Some(CliVerb::Keygen(args)) => cmd::keygen::run(args),
        Some(CliVerb::Openapi) => cmd::openapi::run(),
        Some(CliVerb::Backup(args)) => cmd::backup::backup(args),
        Some(CliVerb::Restore(args)) => cmd::backup::restore(args),
        Some(CliVerb::Completions(args)) => cmd::shell::completions(args),
        Some(CliVerb::Man(args)) => cmd::shell::man(args),
        Some(verb) => cmd::remote::run(verb),
        None => cmd::serve::run(&ServeArgs::default()),
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == ErrorKind::BrokenPipe)
}
