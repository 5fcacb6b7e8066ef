//! The command line: one struct of arguments per verb, with help texts and examples.
//!
//! Doc comments here are help texts. The verbs themselves are implemented in `cmd`.

mod admin;
mod blocks;
mod check;
mod explain;
mod files;
mod help_text;
mod import;
mod init;
mod keygen;
mod lists;
mod locks_and_slots;
mod policies;
mod remote;
mod types;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use catraca_replay::simulate::Field;
use clap::{Parser, Subcommand, ValueEnum};

pub use admin::{
    AuditArgs, ConfigArgs, ConfigVerb, EventsArgs, FactsArgs, FactsVerb, InspectArgs, PrivacyArgs,
    PrivacyVerb, ResetArgs, SelftestArgs, StatsArgs, StatsReport, WhoamiArgs,
};
pub use blocks::{BlockSelector, BlocksArgs, BlocksVerb};
pub use check::{CheckArgs, CreditArgs, SettleArgs};
pub use explain::{ExplainArgs, ExplainOperand};
pub use files::{BackupArgs, CompletionsArgs, ManArgs, RecordsLocationArgs, RestoreArgs};
pub use import::{ConformanceArgs, ExportArgs, ExportVerb, ImportArgs, ImportVerb};
pub use init::{HashArgs, InitArgs, VariablesArgs};
pub use keygen::KeygenArgs;
pub use lists::{ListEntryArgs, ListsArgs, ListsVerb};
pub use locks_and_slots::{LeaseOrFence, LocksArgs, LocksVerb, SlotsArgs, SlotsVerb};
pub use policies::{PoliciesArgs, PoliciesFormat};
pub use remote::{PagingArgs, RemoteArgs};
pub use types::{TypesArgs, TypesLanguage};

/// Rate limiting for any API: limits, prices, blocks and bans in one exact decision.
#[derive(Debug, Parser)]
#[command(
    name = "catraca",
    version,
    help_template = help_text::TEMPLATE,
    after_help = format!("{}\n\n{}", help_text::GROUPS, help_text::EXAMPLES),
    max_term_width = 100
)]
pub struct CliArgs {
    /// The verb; `serve` without one.
    #[command(subcommand)]
    pub verb: Option<CliVerb>,
}

impl CliArgs {
    /// The file of `--secret-file`, the secret that pseudonyms are computed with.
    pub fn secret_file(&self) -> Option<&Path> {
        match &self.verb {
            Some(CliVerb::Explain(args)) => args.secret_file.as_deref(),
            Some(CliVerb::Simulate(args)) => args.secret_file.as_deref(),
            _ => None,
        }
    }
}

/// The verbs. Their doc comments are repeated in `help_text::GROUPS`, which a test compares.
#[derive(Debug, Subcommand)]
pub enum CliVerb {
    /// Serve decisions over HTTP; the default without a verb
    Serve(ServeArgs),
    /// Write the catalog, scenarios and README of a preset into a folder
    Init(InitArgs),
    /// List the presets of `catraca init`
    Presets,
    /// Report every error in a catalog, with its position
    Lint(LintArgs),
    /// Run scenarios: requests at given times, with the decisions they must get
    Test(TestArgs),
    /// Show which policies apply to a request, with which key, tier and price, and why
    Explain(ExplainArgs),
    /// Replay a history in virtual time and show what the catalog decides
    Simulate(SimulateArgs),
    /// Print the gates of a catalog and their attributes as TypeScript or Go
    Types(TypesArgs),
    /// Print the policies of a catalog as a table, for people or for a document
    Policies(PoliciesArgs),
    /// Print the variables of a catalog with their values
    Variables(VariablesArgs),
    /// Hash a value, so that a catalog can state facts about it without containing it
    Hash(HashArgs),
    /// Take over limits and tables of a limiter that is written in TypeScript
    Import(ImportArgs),
    /// Print policies in the form that `catraca import` reads
    Export(ExportArgs),
    /// Make an API key, and the catalog lines that accept it
    Keygen(KeygenArgs),
    /// Copy the records to a file while the server runs
    Backup(BackupArgs),
    /// Restore the records from a backup
    Restore(RestoreArgs),
    /// Check whether a caller may pass, and charge it
    Check(CheckArgs),
    /// Check without charging
    Peek(CheckArgs),
    /// Report the outcome of a check, so that its real cost is charged
    Settle(SettleArgs),
    /// Report a later event that gives units back
    Credit(CreditArgs),
    /// All there is to know of a caller: policies, lists, facts and blocks
    Inspect(InspectArgs),
    /// List, add and release blocks
    Blocks(BlocksArgs),
    /// Addresses and values that are always denied
    #[command(after_help = lists::BLOCKLIST)]
    Blocklist(ListsArgs),
    /// Addresses and values that are always allowed
    #[command(after_help = lists::ALLOWLIST)]
    Allowlist(ListsArgs),
    /// Facts about attribute values, such as plans and categories, that select tiers
    Facts(FactsArgs),
    /// Acquire, renew, list and release the leases of locks
    Locks(LocksArgs),
    /// Bookings in calendars: list free time, hold, confirm, move, cancel
    Slots(SlotsArgs),
    /// Clear counters, block and ban level of one key, or of all keys of a policy
    Reset(ResetArgs),
    /// Make the server test its limits, locks and bookings
    Selftest(SelftestArgs),
    /// Decision totals, and the subjects blocked most often
    Stats(StatsArgs),
    /// Which programs use which policy, and which limits are outside the catalog
    Conformance(ConformanceArgs),
    /// The acts of operators: when, who, what and why
    Audit(AuditArgs),
    /// Follow denials, blocks and other events live
    Events(EventsArgs),
    /// Show or reload the active catalog; override a policy's mode
    Config(ConfigArgs),
    /// Which operator, role and address the server sees, and why
    Whoami(WhoamiArgs),
    /// Export or erase the data stored about a person
    Privacy(PrivacyArgs),
    /// Print a shell completion script
    Completions(CompletionsArgs),
    /// Print or write the manual pages
    Man(ManArgs),
    /// Print the OpenAPI 3.1 description of the HTTP API
    Openapi,
}

const SERVE: &str = r#"Examples:
  catraca                                 a demo catalog, on 127.0.0.1:7878
  catraca serve -c shop.toml              your own catalog
  catraca serve shop.toml --port 8080     on another port
  catraca serve --listen 127.0.0.1:0      any free port; the first line says which

Then, six times: curl -i 'http://127.0.0.1:7878/v1/gates/demo/authorize'

A program checks, acts, and reports the outcome:
  POST /v1/check      {"gate":"login","subject":{"ip":"198.51.100.7"}}; /v1/check/batch: up to 100
  POST /v1/peek       the same without charging
  POST /v1/settle     {"ticket":"...","outcome":{"status":404}}
  POST /v1/credit     {"ref":"E1","event":"payment","subject":{...}}
  POST /v1/buckets    {"subject":{...}}: the level of every bucket; /v1/buckets/POLICY for one
A reverse proxy calls /v1/authorize: 200, or the denial to pass on. GET /healthz returns ok,
GET /readyz the active revision and any problem, GET /metrics Prometheus metrics.

`catraca config schema` prints every setting of the catalog, those of [server] included. A changed
catalog is reloaded at once if it is valid; SIGHUP reloads it too. SIGTERM and Ctrl-C stop the
server after the requests in progress.
The server writes catraca.db (blocks, lists, audit), catraca.secret and catraca.snapshot beside the
catalog; [records] url, [auth] secret_file and [store] snapshot set other paths. With [records]
url = "none", and in the demo, nothing is written. Without API keys (`catraca keygen`) the server
listens on loopback addresses only."#;

/// Serve decisions over HTTP: POST /v1/check, /v1/peek, /v1/settle, /v1/credit, /v1/buckets, and
/// /v1/authorize for reverse proxies.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = SERVE)]
pub struct ServeArgs {
    /// The catalog; a demo by default
    #[arg(short, long, alias = "config", value_name = "FILE")]
    pub catalog: Option<PathBuf>,
    /// The catalog, as `lint` spells it; instead of --catalog
    #[arg(value_name = "FILE", conflicts_with = "catalog")]
    pub file: Option<PathBuf>,
    /// The address and port, instead of `[server] listen`
    #[arg(short, long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// The port on 127.0.0.1; instead of --listen
    #[arg(short, long, value_name = "PORT", conflicts_with = "listen")]
    pub port: Option<u16>,
    /// Start once without API keys, although the last start required them
    #[arg(long)]
    pub allow_no_keys: bool,
}

const LINT: &str = "\
Examples:
  catraca lint shop.toml
  catraca lint --strict presets/*/catalog.toml     warnings fail too
  catraca lint -o json shop.toml                   one object per file, for editors and CI
  catraca lint --explain bad-rate                  the meaning of a code, with an example
  catraca lint shop.toml --against http://127.0.0.1:7878

Exits 1 if a catalog has errors, 2 if a file cannot be read.";

/// Report all errors of a catalog at once: file, line, column, the offending text, and a fix.
#[derive(Debug, clap::Args)]
#[command(after_help = LINT)]
pub struct LintArgs {
    /// The catalogs; included files are read too
    #[arg(required_unless_present_any = ["explain", "catalog"], value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The catalog, as other verbs spell it; instead of FILE
    #[arg(short, long, alias = "config", value_name = "FILE", conflicts_with = "files")]
    pub catalog: Option<PathBuf>,
    /// Explain a diagnostic code, with an example catalog
    #[arg(long, value_name = "CODE", conflicts_with_all = ["files", "catalog", "strict", "output"])]
    pub explain: Option<String>,
    /// Count the active blocks of this server that the catalog would orphan
    #[arg(long, value_name = "URL", conflicts_with = "explain")]
    pub against: Option<String>,
    /// The API key for --against; by default, the key in CATRACA_KEY
    #[arg(long, value_name = "FILE", requires = "against")]
    pub key_file: Option<PathBuf>,
    /// Exit 1 on warnings too, and on orphaned blocks
    #[arg(long)]
    pub strict: bool,
    /// Output for people or for programs
    #[arg(
        short,
        long,
        value_name = "human|json",
        hide_possible_values = true,
        default_value = "human"
    )]
    pub output: Output,
}

const TEST: &str = "\
Example:
  catraca test shop.scenario.toml presets/*/*.scenario.toml

Exits 1 if a decision differs from the expected one, 2 if a file is malformed.";

/// Run scenario files in virtual time and show decisions that differ from the expected ones.
#[derive(Debug, clap::Args)]
#[command(after_help = TEST)]
pub struct TestArgs {
    /// The scenario files, by convention *.scenario.toml
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

const SIMULATE: &str = r#"Examples:
  catraca simulate -c shop.toml tuesday.jsonl                     a summary
  catraca simulate -c shop.toml --format combined access.log.gz   of an access log
  catraca simulate -c shop.toml --format json caddy.log --report out.html
                                                                  with an HTML report
  catraca simulate -c shop.toml --compare new.toml tuesday.jsonl  the effect of a change
  catraca simulate -c shop.toml -o json - < live.jsonl            one decision per line

Events, the default format, are JSON lines in the order of `at`, in milliseconds or RFC 3339:
  {"at":0,"gate":"login","subject":{"ip":"198.51.100.7"}}
  {"at":5,"gate":"lookup","subject":{"payer":"11144477735"},"ref":"E1","outcome":{"status":404}}
  {"at":6,"gate":"lookup","subject":{"payer":"11144477735"},"outcome":{"status":200},"after_ms":40}
  {"at":7,"credit":{"ref":"E1","event":"payment","subject":{"payer":"11144477735"}}}
  {"at":8,"block":{"policy":"login","subject":{"ip":"198.51.100.7"},"for":"1h","reason":"abuse"}}
  {"at":9,"unblock":{"policy":"login","subject":{"ip":"198.51.100.7"}}}
  {"at":9,"reset":{"policy":"login","subject":{"ip":"198.51.100.7"}}}

A check may have `cost`, and `lists: false` to skip the lists. A line of an access log is a check:
its gate comes from the first matching `[[route]]`, else from the catalog's `default`; its status
is the outcome. JSON logs of Caddy, nginx and Traefik need no --field.

A bad line changes no state, and the run continues. Exits 2 if there was a bad line, else 0; the
decisions do not matter."#;

/// Replay a history in virtual time through the engine that decides in production.
#[derive(Debug, clap::Args)]
#[command(after_help = SIMULATE)]
pub struct SimulateArgs {
    /// The catalog
    #[arg(short, long, alias = "config", value_name = "FILE")]
    pub catalog: PathBuf,
    /// The history, may be gzipped; `-` reads standard input
    #[arg(value_name = "EVENTS")]
    pub events: PathBuf,
    /// Events, or the format of an access log
    #[arg(
        short,
        long,
        value_name = "events|combined|json",
        hide_possible_values = true,
        default_value = "events"
    )]
    pub format: Format,
    /// Path of time, ip, method, uri, request, status, header:X
    #[arg(long, value_name = "NAME=PATH", value_parser = Field::parse)]
    pub field: Vec<Field>,
    /// The gate for all lines of a log, instead of the routes'
    #[arg(long, value_name = "NAME")]
    pub gate: Option<String>,
    /// Compare with the decisions of another catalog
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
    /// A file with the secret for pseudonyms, 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Memory for counters, in MiB
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 256,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub memory: u16,
    /// Write an HTML report with timelines, as one file
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Output for people or for programs
    #[arg(
        short,
        long,
        value_name = "human|json",
        hide_possible_values = true,
        default_value = "human"
    )]
    pub output: Output,
}

/// The formats of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// JSON lines, one event each
    Events,
    /// The combined log format of Apache and nginx
    Combined,
    /// An access log as JSON lines
    Json,
}

/// The formats of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Human,
    /// For programs
    Json,
}

fn parse_attribute(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write ATTRIBUTE=VALUE, such as ip=198.51.100.7".to_owned()),
    }
}
