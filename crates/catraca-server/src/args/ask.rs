//! Verbs of a caller: check, peek, settle, credit.

use super::{Remote, attribute};

/// Shown below the help of `check` and `peek`.
pub const CHECK: &str = "\
Examples:
  catraca check login ip=198.51.100.7
  catraca check lookup participant=12345678 payer=11144477735 --cost 5 --ref E1
  catraca check login ip=198.51.100.7 -o json
  catraca peek login ip=198.51.100.7                  the same, and nothing is charged

Exits 0 if the caller may pass, 1 if not, 2 if the question is wrong, 3 if nobody answers.";

/// One question to a gate.
#[derive(Debug, clap::Args)]
#[command(after_help = CHECK)]
pub struct Check {
    #[command(flatten)]
    pub remote: Remote,
    /// The gate, or a single policy
    pub gate: String,
    /// What is known of the caller
    #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = attribute)]
    pub subject: Vec<(String, String)>,
    /// The units the request asks for
    #[arg(long, value_name = "UNITS", allow_negative_numbers = true)]
    pub cost: Option<i64>,
    /// A name to settle or credit it by later
    #[arg(long, value_name = "NAME")]
    pub r#ref: Option<String>,
    /// Look at neither list
    #[arg(long)]
    pub no_lists: bool,
}

const SETTLE: &str = r#"Examples:
  catraca settle --ticket AAAAAAAAABgS… --status 404
  catraca settle --ref E1 payer=11144477735 --status 200 --cost 17
  catraca settle --ticket AAAAAAAAABgS… --status 400 --body '{"reject_id":5}'

Settling twice gives the first result again. Exits 1 if the ticket's time is over."#;

/// Tells what came of a check, so that it is charged its real cost.
#[derive(Debug, clap::Args)]
#[command(after_help = SETTLE)]
pub struct Settle {
    #[command(flatten)]
    pub remote: Remote,
    /// The check, by the ticket it got
    #[arg(long, value_name = "TICKET", allow_hyphen_values = true)]
    #[arg(conflicts_with = "ref", required_unless_present = "ref")]
    pub ticket: Option<String>,
    /// The check, by the name it was given; also say whose it was
    #[arg(long, value_name = "NAME", requires = "subject")]
    pub r#ref: Option<String>,
    /// Whose check it was
    #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = attribute, conflicts_with = "ticket")]
    pub subject: Vec<(String, String)>,
    /// The status of the answer
    #[arg(long, value_name = "STATUS")]
    pub status: Option<u16>,
    /// The body of the answer, as JSON
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub body: Option<serde_json::Value>,
    /// A header of the answer
    #[arg(long, value_name = "NAME=VALUE", value_parser = attribute)]
    pub header: Vec<(String, String)>,
    /// The real amount, for policies with `cost = "reported"`
    #[arg(long, value_name = "UNITS", allow_negative_numbers = true)]
    pub cost: Option<i64>,
}

const CREDIT: &str = "\
Example:
  catraca credit E1 payment payer=11144477735

Exits 1 if nothing was given back, and says why.";

/// Gives back what a late event earns.
#[derive(Debug, clap::Args)]
#[command(after_help = CREDIT)]
pub struct Credit {
    #[command(flatten)]
    pub remote: Remote,
    /// The name that the check was given
    pub r#ref: String,
    /// What happened, such as payment
    pub event: String,
    /// Whose check it was
    #[arg(required = true, value_name = "ATTRIBUTE=VALUE", value_parser = attribute)]
    pub subject: Vec<(String, String)>,
}

fn json(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}
