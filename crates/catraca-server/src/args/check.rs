//! Arguments of the decision verbs: check, peek, settle, credit.

use super::{RemoteArgs, parse_attribute};

/// Shown below the help of `check` and `peek`.
pub const CHECK: &str = "\
Examples:
  catraca check login ip=198.51.100.7
  catraca check lookup participant=12345678 payer=11144477735 --cost 5 --ref E1
  catraca check login ip=198.51.100.7 -o json
  catraca peek login ip=198.51.100.7                  without charging

Exits 0 if the caller may pass, 1 if it is denied, 2 if the request is invalid, 3 if the server
cannot be reached.";

/// One check against a gate.
#[derive(Debug, clap::Args)]
#[command(after_help = CHECK)]
pub struct CheckArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The gate, or a single policy
    pub gate: String,
    /// The attributes of the caller
    #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = parse_attribute)]
    pub subject: Vec<(String, String)>,
    /// The units that the request consumes
    #[arg(long, value_name = "UNITS", allow_negative_numbers = true)]
    pub cost: Option<i64>,
    /// A reference to settle or credit the check by later
    #[arg(long, value_name = "NAME")]
    pub r#ref: Option<String>,
    /// With peek: the namespace; required if there are several
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Ignore allowlist and blocklist
    #[arg(long)]
    pub no_lists: bool,
}

const SETTLE: &str = r#"Examples:
  catraca settle --ticket AAAAAAAAABgS… --status 404
  catraca settle --ref E1 payer=11144477735 --status 200 --cost 17
  catraca settle --ticket AAAAAAAAABgS… --status 400 --body '{"reject_id":5}'

Settling twice returns the first result again. Exits 1 if the ticket has expired."#;

/// Report the outcome of a check, so that its real cost is charged.
#[derive(Debug, clap::Args)]
#[command(after_help = SETTLE)]
pub struct SettleArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The ticket that the check returned
    #[arg(long, value_name = "TICKET", allow_hyphen_values = true)]
    #[arg(conflicts_with = "ref", required_unless_present = "ref")]
    pub ticket: Option<String>,
    /// The --ref of the check; needs its attributes too
    #[arg(long, value_name = "NAME", requires = "subject")]
    pub r#ref: Option<String>,
    /// The attributes of the check
    #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = parse_attribute)]
    #[arg(conflicts_with = "ticket")]
    pub subject: Vec<(String, String)>,
    /// The status of the response
    #[arg(long, value_name = "STATUS")]
    pub status: Option<u16>,
    /// The body of the response, as JSON
    #[arg(long, value_name = "JSON", value_parser = parse_json)]
    pub body: Option<serde_json::Value>,
    /// A header of the response
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_attribute)]
    pub header: Vec<(String, String)>,
    /// The real cost, for policies with `cost = "reported"`
    #[arg(long, value_name = "UNITS", allow_negative_numbers = true)]
    pub cost: Option<i64>,
}

const CREDIT: &str = "\
Example:
  catraca credit E1 payment payer=11144477735

Exits 1 if nothing was given back; the output has the reason.";

/// Report a later event that gives units back.
#[derive(Debug, clap::Args)]
#[command(after_help = CREDIT)]
pub struct CreditArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The --ref of the check
    pub r#ref: String,
    /// The name of the event, such as payment
    pub event: String,
    /// The attributes of the check
    #[arg(required = true, value_name = "ATTRIBUTE=VALUE", value_parser = parse_attribute)]
    pub subject: Vec<(String, String)>,
}

fn parse_json(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}
