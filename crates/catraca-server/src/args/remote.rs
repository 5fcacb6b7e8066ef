//! What every verb that asks a server takes: where it is, which key, and how to print.
//!
//! Must not take a key itself: what is typed is seen by everybody who lists processes.

use std::path::PathBuf;
use std::time::Duration;

use catraca::core::time::parse_span;

use super::Output;

const HEADING: &str = "Server";

/// Where a server is, and how to speak to it.
#[derive(Debug, clap::Args)]
pub struct Remote {
    /// Where the server is
    #[arg(long, global = true, help_heading = HEADING, value_name = "URL")]
    #[arg(env = "CATRACA_URL", hide_env_values = true, default_value = "http://127.0.0.1:7878")]
    pub server: String,
    /// A file with the key; without it, the key is in CATRACA_KEY
    #[arg(long, global = true, help_heading = HEADING, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// A PEM file that https trusts, not the system's
    #[arg(long, global = true, help_heading = HEADING, value_name = "FILE")]
    #[arg(env = "CATRACA_CA", hide_env_values = true)]
    pub ca: Option<PathBuf>,
    /// How long an answer may take
    #[arg(long, global = true, help_heading = HEADING, value_name = "TIME")]
    #[arg(default_value = "10s", value_parser = wait)]
    pub timeout: Duration,
    /// For people or for programs
    #[arg(short, long, global = true, help_heading = HEADING, value_name = "human|json")]
    #[arg(hide_possible_values = true, default_value = "human")]
    pub output: Output,
}

/// Which part of a long list.
#[derive(Debug, clap::Args)]
pub struct Paging {
    /// The most rows; all pages with --all
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: Option<u32>,
    /// From where the page before ended
    #[arg(long, value_name = "NEXT", conflicts_with = "all")]
    pub after: Option<String>,
    /// Every page, one after the other
    #[arg(long)]
    pub all: bool,
}

fn wait(text: &str) -> Result<Duration, String> {
    let span = parse_span(text).map_err(|error| error.to_string())?;
    let wait = u64::try_from(span.micros()).map(Duration::from_micros).unwrap_or_default();
    let bounds = Duration::from_millis(1)..=Duration::from_secs(3_600);
    if bounds.contains(&wait) { Ok(wait) } else { Err("write a time from 1ms to 1h".to_owned()) }
}
