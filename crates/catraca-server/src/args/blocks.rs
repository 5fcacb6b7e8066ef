//! Arguments of `catraca blocks`.

use std::str::FromStr;

use clap::Subcommand;

use super::{PagingArgs, RemoteArgs, parse_attribute};

const BLOCKS: &str = "\
Examples:
  catraca blocks list                                     all active blocks
  catraca blocks list ip=198.51.100.7                     of one address
  catraca blocks list ip=198.51.100.7 --state all         also those that have ended
  catraca blocks list --reason 'Payment API reject_id: 5' of one reason
  catraca blocks history ip=198.51.100.7                  all events of its blocks
  catraca blocks add login ip=198.51.100.7 --for 1h --reason fraud
  catraca blocks release 6495e3a5b8000a3f09c2d4b17 --why 'the customer called'
  catraca blocks release ip=198.51.100.7                  all blocks of the address

Give private values in clear: the server computes their pseudonyms.
Exits 1 if there is no such block.";

/// List, add and release blocks.
#[derive(Debug, clap::Args)]
#[command(after_help = BLOCKS)]
pub struct BlocksArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The verb
    #[command(subcommand)]
    pub verb: BlocksVerb,
}

/// The verbs of `catraca blocks`.
#[derive(Debug, Subcommand)]
pub enum BlocksVerb {
    /// List blocks, newest first
    List {
        /// Only with this attribute value
        #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = parse_attribute)]
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
        /// Only with exactly this reason
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        reason: Option<String>,
        /// active (default), ended or all
        #[arg(long, value_name = "STATE")]
        state: Option<String>,
        #[command(flatten)]
        paging: PagingArgs,
    },
    /// Block a subject for a time
    Add {
        /// The policy that denies the subject
        policy: String,
        /// The attributes of the subject
        #[arg(required = true, value_name = "ATTRIBUTE=VALUE", value_parser = parse_attribute)]
        subject: Vec<(String, String)>,
        /// The namespace; required as soon as there are several
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// For how long: 10m, 2h, 7d, forever
        #[arg(long, value_name = "TIME")]
        r#for: String,
        /// Stored with the block
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        reason: Option<String>,
        /// Written to the audit; by default, the reason
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// End blocks at once
    Release {
        /// The block's id, or attributes: one must match, none may differ
        #[arg(required = true, value_name = "ID|ATTRIBUTE=VALUE")]
        which: Vec<BlockSelector>,
        /// With ATTRIBUTE=VALUE, only from this policy
        #[arg(long, value_name = "NAME")]
        policy: Option<String>,
        /// With ATTRIBUTE=VALUE, the namespace; required as soon as there are several
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// Not the other blocks of the same act, such as the session of a customer
        #[arg(long)]
        only: bool,
        /// Release the other blocks of the same act without asking
        #[arg(long)]
        yes: bool,
        /// Reset the counters too, which may still be full
        #[arg(long)]
        reset: bool,
        /// Written to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// Show blocks, active or ended, and all their events
    History {
        /// The block's id, or an attribute value, for all its blocks
        #[arg(value_name = "ID|ATTRIBUTE=VALUE")]
        which: BlockSelector,
        /// With ATTRIBUTE=VALUE, only of this policy
        #[arg(long, value_name = "NAME")]
        policy: Option<String>,
        /// With ATTRIBUTE=VALUE, only of this namespace
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        #[command(flatten)]
        paging: PagingArgs,
    },
}

/// What `release` and `history` select blocks by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSelector {
    /// The block's id.
    Id(String),
    /// An attribute of the blocked subject, and its value.
    About(String, String),
}

impl FromStr for BlockSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Any number of digits: the server says whether there is such a block.
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Self::Id(text.to_owned()));
        }
        let wrong = |_| "write a block's id, or ATTRIBUTE=VALUE such as ip=198.51.100.7";
        parse_attribute(text)
            .map(|(name, value)| Self::About(name, value))
            .map_err(wrong)
            .map_err(Into::into)
    }
}
