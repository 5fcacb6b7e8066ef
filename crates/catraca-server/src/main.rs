//! The `catraca` binary: reads the command line, runs one verb and exits with its code.
//!
//! Must not hold the work itself: every verb is a file in `cmd`.

mod args;
mod client;
mod cmd;
mod exit;
mod html;
mod http;
mod locks;
mod observe;
mod regular;
mod reload;
mod render;
mod shared;

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::Parser;

use args::{Args, Serve, Verb};
use exit::Exit;
use render::{Untold, tell};

/// Answers are many small pieces, made and dropped on the same thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(exit) => exit.into(),
        // A replay ends with its reader: what would follow may be endless.
        Err(error) if is_closed_pipe(&error) => Exit::Yes.into(),
        Err(error) => {
            tell(format_args!("catraca: {error:#}"));
            code(&error).into()
        }
    }
}

fn code(error: &anyhow::Error) -> Exit {
    if Untold::caused(error) {
        return Exit::Untold;
    }
    error.downcast_ref().map_or(Exit::Wrong, client::Trouble::exit)
}

fn run(args: &Args) -> anyhow::Result<Exit> {
    args.secret_file().map_or(Ok(()), cmd::secret::take)?;
    match &args.verb {
        Some(Verb::Lint(args)) => cmd::lint::run(args),
        Some(Verb::Test(args)) => cmd::test::run(args),
        Some(Verb::Explain(args)) => cmd::explain::run(args),
        Some(Verb::Simulate(args)) => cmd::simulate::run(args),
        Some(Verb::Serve(args)) => cmd::serve::run(args),
        Some(Verb::Keygen(args)) => cmd::keygen::run(args),
        Some(Verb::Openapi) => cmd::openapi::run(),
        Some(Verb::Backup(args)) => cmd::backup::backup(args),
        Some(Verb::Restore(args)) => cmd::backup::restore(args),
        Some(Verb::Completions(args)) => cmd::shell::completions(args),
        Some(Verb::Man(args)) => cmd::shell::man(args),
        Some(verb) => cmd::remote::run(verb),
        None => cmd::serve::run(&Serve::default()),
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == ErrorKind::BrokenPipe)
}
