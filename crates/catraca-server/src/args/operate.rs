//! The other verbs of an operator: facts, stats, audit, reset, config, whoami, events, privacy.

use clap::{Subcommand, ValueEnum};

use super::{Paging, Remote, attribute};

const FACTS: &str = "\
Examples:
  catraca facts set customer=c-4711 plan=gold --why upgraded
  catraca facts get customer=c-4711
  catraca facts list
  catraca facts remove customer=c-4711

Facts choose tiers. What is stated here comes before what the catalog says.
Exits 1 if nothing is known.";

/// What is known of an attribute's value: categories, plans, known tokens.
#[derive(Debug, clap::Args)]
#[command(after_help = FACTS)]
pub struct Facts {
    #[command(flatten)]
    pub remote: Remote,
    /// What to do
    #[command(subcommand)]
    pub verb: FactsVerb,
}

/// What to do with facts.
#[derive(Debug, Subcommand)]
pub enum FactsVerb {
    /// All that was stated, by attribute, value and name
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// All that is known of a value
    Get {
        /// Whose
        #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = attribute)]
        about: (String, String),
    },
    /// State facts; those that are not named stay as they are
    Set {
        /// Whose
        #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = attribute)]
        about: (String, String),
        /// What is true of it
        #[arg(required = true, value_name = "NAME=FACT", value_parser = attribute)]
        facts: Vec<(String, String)>,
        /// Goes to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// Forget all that was stated
    Remove {
        /// Whose
        #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = attribute)]
        about: (String, String),
        /// Goes to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
}

const STATS: &str = "\
Examples:
  catraca stats                        decisions of the last day, by policy
  catraca stats actions --last 1h      by the gate that was asked
  catraca stats top-blocked            who was blocked most often";

/// Totals that add up: allowed, denied and blocked.
#[derive(Debug, clap::Args)]
#[command(after_help = STATS)]
pub struct Stats {
    #[command(flatten)]
    pub remote: Remote,
    /// What to count
    #[arg(default_value = "totals", value_name = "totals|actions|top-blocked")]
    #[arg(hide_possible_values = true)]
    pub what: Counted,
    /// The last minutes or hours, such as 1h; usually a day
    #[arg(long, value_name = "TIME", conflicts_with = "from")]
    pub last: Option<String>,
    /// From this instant on
    #[arg(long, value_name = "INSTANT")]
    pub from: Option<String>,
    /// Up to this instant
    #[arg(long, value_name = "INSTANT")]
    pub to: Option<String>,
    /// The most rows of top-blocked
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: Option<u32>,
}

/// What to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Counted {
    /// Decisions by policy
    Totals,
    /// Decisions by the gate that was asked
    Actions,
    /// Blocks by subject
    TopBlocked,
}

const AUDIT: &str = "\
Examples:
  catraca audit                        the newest acts
  catraca audit --by ana --act block --all -o json";

/// What operators did: when, who, what and why.
#[derive(Debug, clap::Args)]
#[command(after_help = AUDIT)]
pub struct Audit {
    #[command(flatten)]
    pub remote: Remote,
    /// Only what this operator did
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// Only acts of this kind
    #[arg(long, value_name = "ACT")]
    pub act: Option<String>,
    #[command(flatten)]
    pub paging: Paging,
}

const RESET: &str = "\
Examples:
  catraca reset login ip=198.51.100.7 --why 'a test went wrong'
  catraca reset login --confirm login --why 'the limit was wrong'     for everybody

For everybody, the policy's blocks end too. It cannot be undone.";

/// Forgets counters, block and level of one key, or of everybody under a policy.
#[derive(Debug, clap::Args)]
#[command(after_help = RESET)]
pub struct Reset {
    #[command(flatten)]
    pub remote: Remote,
    /// The policy
    pub policy: String,
    /// Whose key
    #[arg(required_unless_present = "confirm", value_name = "ATTRIBUTE=VALUE")]
    #[arg(conflicts_with = "confirm", value_parser = attribute)]
    pub subject: Vec<(String, String)>,
    /// The policy's name once more: everybody's keys
    #[arg(long, value_name = "POLICY", requires = "why")]
    pub confirm: Option<String>,
    /// Goes to the audit
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub why: Option<String>,
}

const CONFIG: &str = "\
Examples:
  catraca config show
  catraca config show login
  catraca config mode login off --why outage       the kill switch, in force at once
  catraca config mode login catalog                and back to what the catalog says
  catraca config reload                            read the catalog again

A catalog that is wrong is refused, and the old one stays in force.";

/// The catalog in force, its reload, and the kill switch.
#[derive(Debug, clap::Args)]
#[command(after_help = CONFIG)]
pub struct Config {
    #[command(flatten)]
    pub remote: Remote,
    /// What to do
    #[command(subcommand)]
    pub verb: ConfigVerb,
}

/// What to do with the catalog.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// The catalog in force, or one policy of it
    Show {
        /// Only this policy
        policy: Option<String>,
    },
    /// Read the catalog's files again
    Reload {
        /// Goes to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// Override a policy's mode: the kill switch
    Mode {
        /// The policy
        policy: String,
        /// What it does from now on; `catalog` gives it back
        #[arg(value_name = "enforce|shadow|off|catalog", hide_possible_values = true)]
        mode: ModeName,
        /// Goes to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
}

/// A policy's mode, or the catalog's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// Deny what is to be denied
    Enforce,
    /// Count, and only say what would be denied
    Shadow,
    /// Do nothing
    Off,
    /// What the catalog says
    Catalog,
}

impl ModeName {
    /// As the server calls it; none gives the policy back.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Enforce => Some("enforce"),
            Self::Shadow => Some("shadow"),
            Self::Off => Some("off"),
            Self::Catalog => None,
        }
    }
}

const WHOAMI: &str = "\
Examples:
  catraca whoami
  catraca whoami --server https://gate.example --key-file ana.key";

/// Which operator, role, namespace and address the server sees, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = WHOAMI)]
pub struct Whoami {
    #[command(flatten)]
    pub remote: Remote,
}

const SELFTEST: &str = "\
Examples:
  catraca selftest
  catraca selftest -o json --server https://gate.example --key-file ana.key

In a namespace of its own: nobody's counters, locks or slots are touched. It needs the role admin
and is in the audit. Exits 1 if anything went otherwise than it must.";

/// Have the server try limits, locks and bookings on itself.
#[derive(Debug, clap::Args)]
#[command(after_help = SELFTEST)]
pub struct Selftest {
    #[command(flatten)]
    pub remote: Remote,
}

const EVENTS: &str = "\
Examples:
  catraca events                       until Ctrl-C
  catraca events --only blocked -o json

Denials, blocks, releases, resets, debts, low water, storms, catalogs. Exits 3 when the server
ends it.";

/// What happens, as it happens.
#[derive(Debug, clap::Args)]
#[command(after_help = EVENTS)]
pub struct Events {
    #[command(flatten)]
    pub remote: Remote,
    /// Only events of this kind; may be repeated
    #[arg(long, value_name = "EVENT")]
    pub only: Vec<String>,
    /// End after so many
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

const PRIVACY: &str = "\
Examples:
  catraca privacy export customer=c-4711 -o json > c-4711.json
  catraca privacy erase customer=c-4711 --confirm --why 'asked to be forgotten'

A block, a list entry or a debt that stands still protects somebody: it is kept, and counted.";

/// All that is known of somebody, to hand out or to erase.
#[derive(Debug, clap::Args)]
#[command(after_help = PRIVACY)]
pub struct Privacy {
    #[command(flatten)]
    pub remote: Remote,
    /// What to do
    #[command(subcommand)]
    pub verb: PrivacyVerb,
}

/// What to do with what is known of somebody.
#[derive(Debug, Subcommand)]
pub enum PrivacyVerb {
    /// Everything that is kept
    Export {
        /// Whom
        #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = attribute)]
        about: (String, String),
        /// Goes to the audit, without the value
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// Delete what has ended, and the facts; there is no way back
    Erase {
        /// Whom
        #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = attribute)]
        about: (String, String),
        /// Yes, delete it
        #[arg(long, required = true)]
        confirm: bool,
        /// Goes to the audit, without the value
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
}
