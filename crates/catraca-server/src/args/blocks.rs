//! `catraca blocks`: who is blocked, until when, why; and letting them go.

use std::str::FromStr;

use clap::Subcommand;

use super::{Paging, Remote, attribute};

const BLOCKS: &str = "\
Examples:
  catraca blocks list                                     who is blocked now
  catraca blocks list ip=198.51.100.7                     is this one?
  catraca blocks history 7                                all that happened to a block
  catraca blocks add login ip=198.51.100.7 --for 1h --reason fraud
  catraca blocks release 7 --why 'the customer called'
  catraca blocks release ip=198.51.100.7                  from all of its blocks

Private values are typed as they are: the server knows them by their pseudonyms.
Exits 1 if there is no such block.";

/// Who is blocked, until when and why; blocking and releasing.
#[derive(Debug, clap::Args)]
#[command(after_help = BLOCKS)]
pub struct Blocks {
    #[command(flatten)]
    pub remote: Remote,
    /// What to do
    #[command(subcommand)]
    pub verb: BlocksVerb,
}

/// What to do with blocks.
#[derive(Debug, Subcommand)]
pub enum BlocksVerb {
    /// Those that stand, newest first
    List {
        /// Only about this caller
        #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = attribute)]
        about: Option<(String, String)>,
        /// Only of this policy
        #[arg(long, value_name = "NAME")]
        policy: Option<String>,
        /// Only of this namespace
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// Only started by excess, ban, operator or upstream
        #[arg(long, value_name = "ORIGIN")]
        origin: Option<String>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Block somebody for a time
    Add {
        /// The policy that is to deny them
        policy: String,
        /// Who
        #[arg(required = true, value_name = "ATTRIBUTE=VALUE", value_parser = attribute)]
        subject: Vec<(String, String)>,
        /// For how long: 10m, 2h, 7d, forever
        #[arg(long, value_name = "TIME")]
        r#for: String,
        /// Stays with the block
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        reason: Option<String>,
        /// Goes to the audit; without it, the reason does
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// Let somebody go, at once
    Release {
        /// The block's number, or attributes: one must match, none may differ
        #[arg(required = true, value_name = "ID|ATTRIBUTE=VALUE")]
        which: Vec<Which>,
        /// With ATTRIBUTE=VALUE, only from this policy
        #[arg(long, value_name = "NAME")]
        policy: Option<String>,
        /// Goes to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// One block, standing or not, and everything that happened to it
    History {
        /// The block's number
        id: u64,
    },
}

/// A block, or a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// By its number.
    Id(u64),
    /// By an attribute of the caller.
    About(String, String),
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        let wrong = |_| "write a block's number, or ATTRIBUTE=VALUE such as ip=198.51.100.7";
        attribute(text)
            .map(|(name, value)| Self::About(name, value))
            .map_err(wrong)
            .map_err(Into::into)
    }
}
