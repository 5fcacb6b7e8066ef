//! `catraca blocklist` and `catraca allowlist`: standing entries for addresses and values.

use std::path::PathBuf;

use clap::Subcommand;

use super::{Paging, Remote};

/// Shown below the help of `blocklist`.
pub const BLOCKLIST: &str = "\
Examples:
  catraca blocklist add 203.0.113.0/24 --reason scanners
  catraca blocklist add customer=c-4711 --for 7d
  catraca blocklist import drop.txt --reason 'from the upstream list'
  catraca blocklist list
  catraca blocklist remove 203.0.113.0/24 --why 'they moved'

An entry is an address, a range, or ATTRIBUTE=VALUE. A file has one per line; # begins a comment.
Exits 1 if an entry that is to be removed is not there.";

/// Shown below the help of `allowlist`.
pub const ALLOWLIST: &str = "\
Examples:
  catraca allowlist add 192.0.2.10 --reason 'our monitoring'
  catraca allowlist add customer=c-4711 --until 2026-12-31T23:59:59Z
  catraca allowlist import partners.txt
  catraca allowlist list
  catraca allowlist remove 192.0.2.10

The allowlist wins over the blocklist, over blocks and over limits.
An entry is an address, a range, or ATTRIBUTE=VALUE. A file has one per line; # begins a comment.
Exits 1 if an entry that is to be removed is not there.";

/// Standing entries for addresses and values.
#[derive(Debug, clap::Args)]
pub struct Lists {
    #[command(flatten)]
    pub remote: Remote,
    /// What to do
    #[command(subcommand)]
    pub verb: ListsVerb,
}

/// What to do with a list.
#[derive(Debug, Subcommand)]
pub enum ListsVerb {
    /// The entries made at run time, newest first
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// Put entries in, all or none
    Add {
        /// An address, a range, or an attribute's value
        #[arg(required = true, value_name = "RANGE|ATTRIBUTE=VALUE")]
        what: Vec<String>,
        #[command(flatten)]
        terms: Terms,
    },
    /// Take entries out
    Remove {
        /// An address, a range, or an attribute's value
        #[arg(required = true, value_name = "RANGE|ATTRIBUTE=VALUE")]
        what: Vec<String>,
        /// Goes to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// Put in the entries of a file; if one line is wrong, none is put in
    Import {
        /// One entry per line; `-` reads standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        terms: Terms,
    },
}

/// Until when, and why.
#[derive(Debug, clap::Args)]
pub struct Terms {
    /// For how long: 10m, 2h, 7d; usually until it is removed
    #[arg(long, value_name = "TIME", conflicts_with = "until")]
    pub r#for: Option<String>,
    /// Until this instant, such as 2026-12-31T23:59:59Z
    #[arg(long, value_name = "INSTANT")]
    pub until: Option<String>,
    /// Stays with the entry
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub reason: Option<String>,
    /// Goes to the audit; without it, the reason does
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub why: Option<String>,
}
