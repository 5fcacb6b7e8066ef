//! The program `catraca` as a library, so that its documentation does not collide with that of the
//! library `catraca`. `main` reads the command line, runs one verb and returns its exit code.
//!
//! Each verb is implemented by a file in `cmd`; an error becomes one line on standard error.
//!
//! The rest of what is public is for front ends: a [`Server`] binds addresses for any [`FrontEnd`],
//! which serves connections with the [`ServerContext`] that all front ends share.

mod args;
mod auth;
mod client;
mod client_certificate;
mod cmd;
mod config;
mod context;
mod dict_poll;
mod exit;
mod feed;
mod html;
pub mod http;
mod http_wire;
mod jwt;
mod listener;
mod observe;
mod proxy;
mod regular_file;
mod reload;
mod render;
mod scrape;
mod server;

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::Parser;

pub use auth::{AuthError, Caller, Role};
pub use client_certificate::parse_certificate;
pub use config::{LoadedCatalog, ProcessReader, load as load_catalog};
pub use context::ServerContext;
pub use http::HttpFrontEnd;
pub use listener::{Connection, ConnectionLimit, ConnectionStream, FrontEnd, Phase};
pub use observe::call_metrics::CallResult;
pub use proxy::ProxyFrontEnd;
pub use reload::ReloadCause;
pub use server::{Server, ServerOptions};

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
        Some(CliVerb::Init(args)) => cmd::init::run(args),
        Some(CliVerb::Presets) => cmd::presets::run(),
        Some(CliVerb::Policies(args)) => cmd::policies::run(args),
        Some(CliVerb::Variables(args)) => cmd::variables::run(args),
        Some(CliVerb::Hash(args)) => cmd::hash::run(args),
        Some(CliVerb::Import(args)) => cmd::import::run(args),
        Some(CliVerb::Export(args)) => cmd::import::export(args),
        Some(CliVerb::Conformance(args)) => cmd::conformance::run(args),
        Some(CliVerb::Lint(args)) => cmd::lint::run(args),
        Some(CliVerb::Test(args)) => cmd::test::run(args),
        Some(CliVerb::Explain(args)) => cmd::explain::run(args),
        Some(CliVerb::Simulate(args)) => cmd::simulate::run(args),
        Some(CliVerb::Serve(args)) => cmd::serve::run(args),
        Some(CliVerb::Keygen(args)) => cmd::keygen::run(args),
        Some(CliVerb::Types(args)) => cmd::types::run(args),
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
