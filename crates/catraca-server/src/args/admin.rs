//! Arguments of the other operator verbs: facts, stats, audit, reset, config, whoami, selftest,
//! events, privacy.

use clap::builder::PossibleValuesParser;
use clap::{Subcommand, ValueEnum};

use super::{PagingArgs, RemoteArgs, parse_attribute};
use crate::feed::EVENT_NAMES;

const FACTS: &str = "\
Examples:
  catraca facts set customer=c-4711 plan=gold --why upgraded
  catraca facts get customer=c-4711
  catraca facts list
  catraca facts remove customer=c-4711

Facts select tiers. A fact set here overrides the catalog's, and a fact of a namespace overrides
those of all.
Exits 1 if the value has no facts.";

/// Facts about attribute values, such as plans and categories, that select tiers.
#[derive(Debug, clap::Args)]
#[command(after_help = FACTS)]
pub struct FactsArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The verb
    #[command(subcommand)]
    pub verb: FactsVerb,
}

/// The verbs of `catraca facts`.
#[derive(Debug, Subcommand)]
pub enum FactsVerb {
    /// List the facts set at run time, by attribute, value and name
    List {
        /// Only of this namespace
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        #[command(flatten)]
        paging: PagingArgs,
    },
    /// Show the facts of a value
    Get {
        /// The attribute and its value
        #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = parse_attribute)]
        about: (String, String),
        /// Only those set in this namespace; by default those of all, or of that of the key
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
    },
    /// Set facts; others of the value stay unchanged
    Set {
        /// The attribute and its value
        #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = parse_attribute)]
        about: (String, String),
        /// The facts
        #[arg(required = true, value_name = "NAME=FACT", value_parser = parse_attribute)]
        facts: Vec<(String, String)>,
        /// The only namespace in which they apply; by default all, or that of the key
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// Written to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// Remove the facts set at run time
    Remove {
        /// The attribute and its value
        #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = parse_attribute)]
        about: (String, String),
        /// The namespace of the facts; by default those of all, or of that of the key
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// Written to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
}

const STATS: &str = "\
Examples:
  catraca stats                        decisions of the last day, by policy
  catraca stats groups --last 1h       by group of policies
  catraca stats actions --last 1h      by gate
  catraca stats top-blocked            the subjects blocked most often
  catraca stats callers                which program uses which gate";

/// Totals of allowed, denied and blocked checks.
#[derive(Debug, clap::Args)]
#[command(after_help = STATS)]
pub struct StatsArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// What to count
    #[arg(default_value = "totals", value_name = "totals|groups|actions|top-blocked|callers")]
    #[arg(hide_possible_values = true)]
    pub what: StatsReport,
    /// The last minutes or hours, such as 1h; one day by default
    #[arg(long, value_name = "TIME", conflicts_with = "from")]
    pub last: Option<String>,
    /// Start of the interval
    #[arg(long, value_name = "INSTANT")]
    pub from: Option<String>,
    /// End of the interval
    #[arg(long, value_name = "INSTANT")]
    pub to: Option<String>,
    /// Maximum number of rows of top-blocked
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: Option<u32>,
}

/// The reports of `catraca stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatsReport {
    /// Decisions by policy
    Totals,
    /// Decisions by group of policies
    Groups,
    /// Decisions by gate
    Actions,
    /// Blocks by subject
    TopBlocked,
    /// Checks by program and gate
    Callers,
}

const AUDIT: &str = "\
Examples:
  catraca audit                        the newest acts
  catraca audit --by ana --act block --all -o json";

/// The acts of operators: when, who, what and why.
#[derive(Debug, clap::Args)]
#[command(after_help = AUDIT)]
pub struct AuditArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Only acts of this operator
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// Only acts of this kind
    #[arg(long, value_name = "ACT")]
    pub act: Option<String>,
    /// Only acts inside this namespace
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    #[command(flatten)]
    pub paging: PagingArgs,
}

const RESET: &str = "\
Examples:
  catraca reset login ip=198.51.100.7 --why 'a test went wrong'
  catraca reset login --all --why 'the limit was wrong'        all keys; asks for confirmation
  catraca reset login --confirm login --why 'a new quarter'    all keys, in a script

A reset of all keys ends the policy's blocks too. It cannot be undone.";

/// Clear counters, block and ban level of one key, or of all keys of a policy.
#[derive(Debug, clap::Args)]
#[command(after_help = RESET)]
pub struct ResetArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The policy
    pub policy: String,
    /// The attributes of the key
    #[arg(required_unless_present_any = ["confirm", "all"], value_name = "ATTRIBUTE=VALUE")]
    #[arg(conflicts_with_all = ["confirm", "all"], value_parser = parse_attribute)]
    pub subject: Vec<(String, String)>,
    /// The namespace of the key; required as soon as there are several
    #[arg(long, value_name = "NAME", conflicts_with_all = ["confirm", "all"])]
    pub namespace: Option<String>,
    /// Reset all keys of the policy; asks for its name again
    #[arg(long, requires = "why")]
    pub all: bool,
    /// The policy's name again, to reset all its keys without a question
    #[arg(long, value_name = "POLICY", requires = "why")]
    pub confirm: Option<String>,
    /// Written to the audit
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub why: Option<String>,
}

const INSPECT: &str = "\
Examples:
  catraca inspect customer=c-4711
  catraca inspect ip=198.51.100.7 --namespace shop -o json

Shows every policy that applies, with what is left; the list that decides, facts, and the active
blocks with their ids. Changes nothing. `catraca blocks release` ends blocks.";

/// All there is to know of a caller: policies, lists, facts and blocks.
#[derive(Debug, clap::Args)]
#[command(after_help = INSPECT)]
pub struct InspectArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The attributes of the caller
    #[arg(required = true, value_name = "ATTRIBUTE=VALUE", value_parser = parse_attribute)]
    pub subject: Vec<(String, String)>,
    /// The namespace; required as soon as there are several
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
}

const CONFIG: &str = "\
Examples:
  catraca config show
  catraca config show login
  catraca config mode login off --why outage       the kill switch, applies at once
  catraca config mode login catalog                back to the catalog's mode
  catraca config reload                            read the catalog again
  catraca config schema > catalog.schema.json      for editors; needs no server

An invalid catalog is rejected, and the old one stays active.";

/// Show or reload the active catalog; override a policy's mode.
#[derive(Debug, clap::Args)]
#[command(after_help = CONFIG)]
pub struct ConfigArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The verb
    #[command(subcommand)]
    pub verb: ConfigVerb,
}

/// The verbs of `catraca config`.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Show the active catalog, or one policy of it
    Show {
        /// Only this policy
        policy: Option<String>,
    },
    /// Read the catalog's files again
    Reload {
        /// Only show what would change, and which blocks would be orphaned
        #[arg(long)]
        dry_run: bool,
        /// Written to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// Override a policy's mode: the kill switch
    Mode {
        /// The policy
        policy: String,
        /// The new mode; `catalog` removes the override
        #[arg(value_name = "enforce|shadow|off|catalog", hide_possible_values = true)]
        mode: ModeName,
        /// Written to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// Print the JSON Schema of a catalog
    Schema,
}

/// A mode to override with, or `catalog` to remove the override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// Decide and deny
    Enforce,
    /// Count and report, never deny
    Shadow,
    /// Do nothing
    Off,
    /// The catalog's mode
    Catalog,
}

impl ModeName {
    /// The mode in the API; `None` (JSON null) removes the override.
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
pub struct WhoamiArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
}

const SELFTEST: &str = "\
Examples:
  catraca selftest
  catraca selftest -o json --server https://gate.example --key-file ana.key

The tests run in a separate namespace and touch no other counters, locks or slots. They need the
role admin and are written to the audit. Exits 1 if a test fails.";

/// Make the server test its limits, locks and bookings.
#[derive(Debug, clap::Args)]
#[command(after_help = SELFTEST)]
pub struct SelftestArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
}

const EVENTS: &str = "\
Examples:
  catraca events                       until Ctrl-C
  catraca events --only blocked -o json

Events: blocked, catalog (it was changed), denied, low_water, missed (events that came too fast for
this reader), owed (a balance below zero), released, reset, storm (of bans). Exits 3 when the server
closes the stream.";

/// Follow denials, blocks and other events live.
#[derive(Debug, clap::Args)]
#[command(after_help = EVENTS)]
pub struct EventsArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Only events of this kind; may be repeated
    #[arg(long, value_name = "EVENT", hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(EVENT_NAMES))]
    pub only: Vec<String>,
    /// Stop after this many events
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

const PRIVACY: &str = "\
Examples:
  catraca privacy export customer=c-4711 -o json > c-4711.json
  catraca privacy erase customer=c-4711 --confirm --why 'asked to be forgotten'

Active blocks, list entries and debts are not erased; the output counts them as retained.";

/// Export or erase the data stored about a person.
#[derive(Debug, clap::Args)]
#[command(after_help = PRIVACY)]
pub struct PrivacyArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The verb
    #[command(subcommand)]
    pub verb: PrivacyVerb,
}

/// The verbs of `catraca privacy`.
#[derive(Debug, Subcommand)]
pub enum PrivacyVerb {
    /// Print all stored data
    Export {
        /// The person, by an attribute and its value
        #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = parse_attribute)]
        about: (String, String),
        /// Written to the audit, without the value
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// Delete facts and ended blocks and entries; cannot be undone
    Erase {
        /// The person, by an attribute and its value
        #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = parse_attribute)]
        about: (String, String),
        /// Required: confirms the deletion
        #[arg(long, required = true)]
        confirm: bool,
        /// Written to the audit, without the value
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
}
