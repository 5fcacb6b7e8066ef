//! Arguments of every verb that calls a server: URL, key file, timeout, output format, paging.
//!
//! There is no option for the key itself, because other users can list the arguments of a process.

use std::path::PathBuf;
use std::time::Duration;

use catraca::core::time::parse_span;

use super::Output;

const HEADING: &str = "Server";

/// Which server to call, and how to print its response.
#[derive(Debug, clap::Args)]
pub struct RemoteArgs {
    /// URL of the server
    #[arg(long, global = true, help_heading = HEADING, value_name = "URL")]
    #[arg(env = "CATRACA_URL", hide_env_values = true, default_value = "http://127.0.0.1:7878")]
    pub server: String,
    /// A file with the API key; by default, the key in CATRACA_KEY
    #[arg(long, global = true, help_heading = HEADING, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// A PEM file of trusted certificates
    #[arg(long, global = true, help_heading = HEADING, value_name = "FILE")]
    #[arg(env = "CATRACA_CA", hide_env_values = true)]
    pub ca: Option<PathBuf>,
    /// How long to wait for a response
    #[arg(long, global = true, help_heading = HEADING, value_name = "TIME")]
    #[arg(default_value = "10s", value_parser = parse_timeout)]
    pub timeout: Duration,
    /// Output for people or for programs
    #[arg(short, long, global = true, help_heading = HEADING, value_name = "human|json")]
    #[arg(hide_possible_values = true, default_value = "human")]
    pub output: Output,
}

/// Which page of a long list.
#[derive(Debug, clap::Args)]
pub struct PagingArgs {
    /// Maximum number of rows per page
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: Option<u32>,
    /// Continue after the end of the previous page
    #[arg(long, value_name = "NEXT", conflicts_with = "all")]
    pub after: Option<String>,
    /// Fetch all pages
    #[arg(long)]
    pub all: bool,
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    let span = parse_span(text).map_err(|error| error.to_string())?;
    // A negative span becomes zero, which the bounds refuse.
    let timeout = u64::try_from(span.micros()).map(Duration::from_micros).unwrap_or_default();
    let bounds = Duration::from_millis(1)..=Duration::from_secs(3_600);
    if bounds.contains(&timeout) {
        Ok(timeout)
    } else {
        Err("write a time from 1ms to 1h".to_owned())
    }
}
