//! The command line, as a tour: every verb says what it is for and shows an example.
//!
//! Must not do anything: verbs are in `cmd`.

mod ask;
mod blocks;
mod explain;
mod files;
mod lists;
mod locks;
mod operate;
mod remote;
mod tour;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand, ValueEnum};

use crate::cmd::simulate::Field;

pub use ask::{Check, Credit, Settle};
pub use blocks::{Blocks, BlocksVerb, Which};
pub use explain::{Explain, Told};
pub use files::{Backup, Completions, Man, Place, Restore};
pub use lists::{Lists, ListsVerb, Terms};
pub use locks::{Locks, LocksVerb, Slots, SlotsVerb};
pub use operate::{
    Audit, Config, ConfigVerb, Counted, Events, Facts, FactsVerb, Privacy, PrivacyVerb, Reset,
    Selftest, Stats, Whoami,
};
pub use remote::{Paging, Remote};

/// One turnstile for any API: limits, prices, blocks and bans in one exact decision.
#[derive(Debug, Parser)]
#[command(
    name = "catraca",
    version,
    help_template = tour::TEMPLATE,
    after_help = format!("{}\n\n{}", tour::GROUPS, tour::TOUR),
    max_term_width = 100
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

impl Args {
    /// The file with the secret of pseudonyms, if one is named.
    pub fn secret_file(&self) -> Option<&Path> {
        match &self.verb {
            Some(Verb::Explain(args)) => args.secret_file.as_deref(),
            Some(Verb::Simulate(args)) => args.secret_file.as_deref(),
            _ => None,
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Serve decisions over HTTP; this is what happens without a verb
    Serve(Serve),
    /// Say everything that is wrong with a catalog, and where
    Lint(Lint),
    /// Run scenarios: steps at instants, with the decisions they must get
    Test(Test),
    /// Say which policies a request meets, with which key, tier and price, and why
    Explain(Explain),
    /// Replay a history in virtual time and show what the catalog makes of it
    Simulate(Simulate),
    /// Make a key for callers, and the lines that let it in
    Keygen(Keygen),
    /// Copy the records to a file, while the server goes on
    Backup(Backup),
    /// Put a backup of the records back
    Restore(Restore),
    /// May this caller pass? Decide and charge
    Check(Check),
    /// The same, and nothing is charged
    Peek(Check),
    /// Tell what came of a check, so that it is charged its real cost
    Settle(Settle),
    /// Give back what a late event earns
    Credit(Credit),
    /// Who is blocked, until when and why; block and release
    Blocks(Blocks),
    /// Addresses and values that never pass
    #[command(after_help = lists::BLOCKLIST)]
    Blocklist(Lists),
    /// Addresses and values that always pass
    #[command(after_help = lists::ALLOWLIST)]
    Allowlist(Lists),
    /// Categories, plans, known tokens: what chooses a tier
    Facts(Facts),
    /// Leases in force: who holds what, until when; ending them
    Locks(Locks),
    /// Ranges of time in calendars: what is free, holding and confirming
    Slots(Slots),
    /// Forget counters, block and level of one key, or of everybody under a policy
    Reset(Reset),
    /// Have the server try limits, locks and bookings on itself
    Selftest(Selftest),
    /// Totals that add up, and who is blocked most often
    Stats(Stats),
    /// What operators did: when, who, what and why
    Audit(Audit),
    /// What happens, as it happens
    Events(Events),
    /// The catalog in force, its reload, and the kill switch
    Config(Config),
    /// Which operator and address the server sees, and why
    Whoami(Whoami),
    /// All that is known of somebody, to hand out or to erase
    Privacy(Privacy),
    /// A script that completes verbs and options in a shell
    Completions(Completions),
    /// The manual pages
    Man(Man),
    /// Print the description of the HTTP API, OpenAPI 3.1, to make clients of
    Openapi,
}

const SERVE: &str = r#"Examples:
  catraca                                 a demo catalog, on 127.0.0.1:7878
  catraca serve --config shop.toml        your own
  catraca serve --listen 127.0.0.1:0      any free port; the first line says which

Then, six times: curl -i 'http://127.0.0.1:7878/v1/gates/demo/authorize'

A program asks, acts, and tells what came of it:
  POST /v1/check      {"gate":"login","subject":{"ip":"198.51.100.7"}}, or a list of up to 100
  POST /v1/peek       the same, and nothing is charged
  POST /v1/settle     {"ticket":"...","outcome":{"status":404}}
  POST /v1/credit     {"ref":"E1","event":"payment","subject":{...}}
  POST /v1/buckets    {"subject":{...}}: what every bucket holds; /v1/buckets/POLICY for one
A reverse proxy asks /v1/authorize: 200, or the denial to hand on. GET /healthz says ok,
GET /readyz which catalog is in force and what is wrong, GET /metrics what happened so far.

[server] in the catalog: listen, hosts, log, client_address, x_ratelimit, connections_max,
connections_per_address, head_timeout, body_timeout, answer_timeout, idle_timeout, stop_delay,
tls_cert, tls_key. A catalog that is edited is put in force at once, if it is right; so does SIGHUP.
SIGTERM and Ctrl-C finish what is being answered.
Beside the catalog it keeps catraca.db (blocks, lists, audit), catraca.secret and catraca.snapshot;
[records] url, [auth] secret_file and [store] snapshot name other places, [records] url = "none"
keeps nothing, and so does the demo. Without keys to tell callers apart (`catraca keygen`) only a
loopback address is served."#;

/// Decisions over HTTP: POST /v1/check, /v1/peek, /v1/settle, /v1/credit, /v1/buckets, and
/// /v1/authorize for reverse proxies.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = SERVE)]
pub struct Serve {
    /// The catalog; without one, a demo
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The address and port, instead of what `[server] listen` says
    #[arg(short, long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Start without keys although callers needed one before; for one start
    #[arg(long)]
    pub allow_no_keys: bool,
}

const KEYGEN: &str = "\
Examples:
  catraca keygen --role check                              for a program that asks
  catraca keygen --role check --namespace shop             one that sees only its own counts
  catraca keygen --role admin --name ana                   for a person who operates

read looks at states, check also decides and settles, admin may do everything. The key is printed
once; the catalog keeps its hash in [[auth.key]]. As soon as there is one key, every call but
/healthz, /readyz, /openapi.json and /docs needs one, and any address may be listened on.";

/// A new random key, and the [[auth.key]] to paste into the catalog.
#[derive(Debug, clap::Args)]
#[command(after_help = KEYGEN)]
pub struct Keygen {
    /// What it may do
    #[arg(long, value_name = "read|check|admin", hide_possible_values = true)]
    pub role: RoleName,
    /// The namespace it is bound to; without one, it may also make calls that see them all
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// What operators call it; without one, its role and a part of its hash
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleName {
    /// Look at states
    Read,
    /// Also decide and settle
    Check,
    /// Everything
    Admin,
}

impl RoleName {
    /// As a catalog writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Check => "check",
            Self::Admin => "admin",
        }
    }
}

const LINT: &str = "\
Examples:
  catraca lint shop.toml
  catraca lint --strict presets/*/catalog.toml     warnings fail too
  catraca lint -o json shop.toml                   one object per file, for editors and CI
  catraca lint --explain bad-rate                  what a code means, with an example

Exits 1 if a catalog has errors, 2 if a file cannot be read.";

/// Every mistake of a catalog in one go: file, line, column, the offending text, and a fix.
#[derive(Debug, clap::Args)]
#[command(after_help = LINT)]
pub struct Lint {
    /// The catalogs; each is read with what it includes
    #[arg(required_unless_present = "explain", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Say what a code means, and show a catalog that gives it
    #[arg(long, value_name = "CODE", conflicts_with_all = ["files", "strict", "output"])]
    pub explain: Option<String>,
    /// Fail on warnings too
    #[arg(long)]
    pub strict: bool,
    /// For people or for programs
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

Exits 1 if a scenario differs, 2 if a file is malformed.";

/// Runs scenario files in virtual time and shows where a decision is not the one that was expected.
#[derive(Debug, clap::Args)]
#[command(after_help = TEST)]
pub struct Test {
    /// The scenarios, usually called *.scenario.toml
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

const SIMULATE: &str = r#"Examples:
  catraca simulate -c shop.toml tuesday.jsonl                     a summary
  catraca simulate -c shop.toml --format combined access.log.gz   of an access log
  catraca simulate -c shop.toml --format json caddy.log --report out.html
                                                                  and a page to send around
  catraca simulate -c shop.toml --compare new.toml tuesday.jsonl  what would a change do?
  catraca simulate -c shop.toml -o json - < live.jsonl            one decision per line

Events, the default format, are JSON lines, `at` in milliseconds or RFC 3339 and never going back:
  {"at":0,"gate":"login","subject":{"ip":"198.51.100.7"}}
  {"at":5,"gate":"lookup","subject":{"payer":"11144477735"},"ref":"E1","outcome":{"status":404}}
  {"at":6,"gate":"lookup","subject":{"payer":"11144477735"},"outcome":{"status":200},"after_ms":40}
  {"at":7,"credit":{"ref":"E1","event":"payment","subject":{"payer":"11144477735"}}}
  {"at":8,"block":{"policy":"login","subject":{"ip":"198.51.100.7"},"for":"1h","reason":"abuse"}}
  {"at":9,"unblock":{"policy":"login","subject":{"ip":"198.51.100.7"}}}
  {"at":9,"reset":{"policy":"login","subject":{"ip":"198.51.100.7"}}}

A check also takes `cost`, and `lists: false` to skip the lists. A line of an access log is a check:
its gate is that of the first `[[route]]` that takes it, else the catalog's `default`; its status is
the outcome. A JSON log of Caddy, nginx or Traefik needs no --field.

A bad line changes nothing, and the run goes on. Exits 2 if there was one, else 0, whatever was
decided."#;

/// Replays a history through the same engine that decides in production, in virtual time.
#[derive(Debug, clap::Args)]
#[command(after_help = SIMULATE)]
pub struct Simulate {
    /// The catalog
    #[arg(short, long, alias = "config", value_name = "FILE")]
    pub catalog: PathBuf,
    /// The history, gzipped or not; `-` reads standard input
    #[arg(value_name = "EVENTS")]
    pub events: PathBuf,
    /// How it is written: events, or an access log
    #[arg(
        short,
        long,
        value_name = "events|combined|json",
        hide_possible_values = true,
        default_value = "events"
    )]
    pub format: Format,
    /// Where a JSON log has time, ip, method, uri, status, header:X
    #[arg(long, value_name = "NAME=PATH", value_parser = Field::parse)]
    pub field: Vec<Field>,
    /// The gate of every line of a log, instead of its route's
    #[arg(long, value_name = "NAME")]
    pub gate: Option<String>,
    /// Another catalog: what would change?
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
    /// Make pseudonyms with this secret, 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// MiB of memory for counters
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 256,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub memory: u16,
    /// Write a page with timelines, complete in one file
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// For people or for programs
    #[arg(
        short,
        long,
        value_name = "human|json",
        hide_possible_values = true,
        default_value = "human"
    )]
    pub output: Output,
}

/// How a history is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Our own JSON lines
    Events,
    /// The combined log format of Apache and nginx
    Combined,
    /// An access log as JSON lines
    Json,
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Human,
    /// For programs
    Json,
}

fn attribute(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write ATTRIBUTE=VALUE, such as ip=198.51.100.7".to_owned()),
    }
}
