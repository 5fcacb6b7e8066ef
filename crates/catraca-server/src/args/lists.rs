//! Arguments of `catraca blocklist` and `catraca allowlist`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{PagingArgs, RemoteArgs};

/// Shown below the help of `blocklist`.
pub const BLOCKLIST: &str = "\
Examples:
  catraca blocklist add 203.0.113.0/24 --reason scanners
  catraca blocklist add customer=c-4711 --for 7d --namespace shop
  catraca blocklist import drop.txt --reason 'from the upstream list'
  catraca blocklist list
  catraca blocklist remove 203.0.113.0/24 --why 'they moved'

An entry is an address, a range, or ATTRIBUTE=VALUE. A file has one per line; # starts a comment.
Exits 1 if an entry to remove does not exist.";

/// Shown below the help of `allowlist`.
pub const ALLOWLIST: &str = "\
Examples:
  catraca allowlist add 192.0.2.10 --reason 'our monitoring'
  catraca allowlist add customer=c-4711 --until 2026-12-31T23:59:59Z
  catraca allowlist import partners.txt
  catraca allowlist list
  catraca allowlist remove 192.0.2.10

The allowlist wins over the blocklist, over blocks and over limits.
An entry is an address, a range, or ATTRIBUTE=VALUE. A file has one per line; # starts a comment.
Exits 1 if an entry to remove does not exist.";

/// List, add, import and remove entries.
#[derive(Debug, clap::Args)]
pub struct ListsArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The verb
    #[command(subcommand)]
    pub verb: ListsVerb,
}

/// The verbs of both lists.
#[derive(Debug, Subcommand)]
pub enum ListsVerb {
    /// List the entries added at run time, newest first
    List {
        /// Only of this namespace
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        #[command(flatten)]
        paging: PagingArgs,
    },
    /// Add entries, all or none
    Add {
        /// An address, a range, or an attribute with its value
        #[arg(required = true, value_name = "RANGE|ATTRIBUTE=VALUE")]
        what: Vec<String>,
        #[command(flatten)]
        terms: ListEntryArgs,
    },
    /// Remove entries
    Remove {
        /// An address, a range, or an attribute with its value
        #[arg(required = true, value_name = "RANGE|ATTRIBUTE=VALUE")]
        what: Vec<String>,
        /// The namespace of the entries; by default those of all, or of that of the key
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// Written to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// Add the entries of a file; if one line is invalid, none is added
    Import {
        /// One entry per line; `-` reads standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        terms: ListEntryArgs,
    },
}

/// Namespace, expiry and reason of new entries.
#[derive(Debug, clap::Args)]
pub struct ListEntryArgs {
    /// The only namespace in which they apply; by default all, or that of the key
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// For how long: 10m, 2h, 7d; by default, until it is removed
    #[arg(long, value_name = "TIME", conflicts_with = "until")]
    pub r#for: Option<String>,
    /// Until this instant, such as 2026-12-31T23:59:59Z
    #[arg(long, value_name = "INSTANT")]
    pub until: Option<String>,
    /// Stored with the entry
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub reason: Option<String>,
    /// Written to the audit; by default, the reason
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub why: Option<String>,
}
