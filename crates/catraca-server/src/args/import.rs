//! The arguments of `catraca import`, `export` and `conformance`.

use std::path::PathBuf;

use clap::Subcommand;

use super::RemoteArgs;

const IMPORT: &str = "\
Examples:
  catraca import configs configs.ts > catalog.toml        limits written in TypeScript
  catraca import configs --anchored configs.ts            with windows that end as a whole
  catraca import buyer-rate-limits rows.csv               blocks in force, from its table
  catraca import ip-blocklist rows.csv                    its blocklist, with reasons and expiries

A table comes from `psql -c \"\\copy buyer_rate_limits to 'rows.csv' csv header\"`. All rows are
read and checked before the first one is sent.";

/// Take over limits, blocks and the blocklist of a limiter that is written in TypeScript.
#[derive(Debug, clap::Args)]
#[command(after_help = IMPORT)]
pub struct ImportArgs {
    /// What to import
    #[command(subcommand)]
    pub verb: ImportVerb,
}

/// What `catraca import` reads.
#[derive(Debug, Subcommand)]
pub enum ImportVerb {
    /// Print a catalog for configs with action, maxAttempts, windowMinutes, blockDurationMinutes
    Configs {
        /// The TypeScript or JavaScript file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The attribute by which callers are counted
        #[arg(long, value_name = "ATTRIBUTE", default_value = "ip")]
        by: String,
        /// Fixed windows that start with the first attempt, as in the tables, instead of sliding
        #[arg(long)]
        anchored: bool,
    },
    /// Add the blocks of a table buyer_rate_limits that have not ended
    BuyerRateLimits {
        #[command(flatten)]
        remote: RemoteArgs,
        /// The table as CSV with its head
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The attribute that the column `identifier` has the values of
        #[arg(long, value_name = "ATTRIBUTE", default_value = "ip")]
        by: String,
        /// The namespace; required as soon as there are several
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
    },
    /// Add the entries of a table ip_blocklist that have not expired
    IpBlocklist {
        #[command(flatten)]
        remote: RemoteArgs,
        /// The table as CSV with its head
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The only namespace in which they apply; by default all, or that of the key
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
    },
}

const EXPORT: &str = "\
Example:
  catraca export configs -c catalog.toml > configs.ts";

/// Print a catalog in the form that `catraca import` reads.
#[derive(Debug, clap::Args)]
#[command(after_help = EXPORT)]
pub struct ExportArgs {
    /// What to print
    #[command(subcommand)]
    pub verb: ExportVerb,
}

/// What `catraca export` prints.
#[derive(Debug, Subcommand)]
pub enum ExportVerb {
    /// Policies as configs in TypeScript, in minutes
    Configs {
        /// The catalog
        #[arg(short, long, alias = "config", value_name = "FILE")]
        catalog: PathBuf,
    },
}

const CONFORMANCE: &str = "\
Examples:
  catraca conformance                                           which program uses which policy
  catraca conformance --code supabase/functions                 and whether code states limits
  catraca conformance -c catalog.toml --code supabase/functions without a server, for CI

A limit that code states itself is an object with two or more of action, maxAttempts, windowMinutes
and blockDurationMinutes, of which one is a number. Exits 1 below 100%.";

/// Count policies, limits outside the catalog, and the programs that use each policy.
#[derive(Debug, clap::Args)]
#[command(after_help = CONFORMANCE)]
pub struct ConformanceArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The catalog, instead of a server: then no programs are counted
    #[arg(value_name = "FILE", conflicts_with = "catalog")]
    pub file: Option<PathBuf>,
    /// The same
    #[arg(short, long, alias = "config", value_name = "FILE")]
    pub catalog: Option<PathBuf>,
    /// A folder or file with TypeScript or JavaScript; may be repeated
    #[arg(long, value_name = "PATH")]
    pub code: Vec<PathBuf>,
    /// A file that may have limits, such as the one to import; may be repeated
    #[arg(long, value_name = "FILE", requires = "code")]
    pub except: Vec<PathBuf>,
}
