//! Arguments of `catraca explain`: a gate by name, or a request by method and path.

use std::path::PathBuf;

use super::{Output, parse_attribute};

const EXPLAIN: &str = "\
Examples:
  catraca explain -c shop.toml login ip=198.51.100.7
  catraca explain -c dict.toml lookup participant=12345678 payer=11144477735 --cost 5
  catraca explain -c shop.toml login ip=198.51.100.7 -o json
  catraca explain -c shop.toml POST '/api/orders/7?q=1' ip=198.51.100.7

METHOD and PATH select the gate by the catalog's routes, and set the attributes that routes read
from path and query; attributes from headers must be given. The explanation depends on the catalog
alone: no state is read, and nothing is charged.";

/// Show which policies apply to a request, with which key, tier and price, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = EXPLAIN)]
pub struct ExplainArgs {
    /// The catalog
    #[arg(short, long, alias = "config", value_name = "FILE")]
    pub catalog: PathBuf,
    /// The gate, a single policy, or the method of a request
    #[arg(value_name = "GATE|METHOD PATH")]
    pub gate: String,
    /// The attributes of the caller
    #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = parse_operand)]
    pub operands: Vec<ExplainOperand>,
    /// A file with the secret for pseudonyms, 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// The units that the request consumes
    #[arg(long, value_name = "UNITS", allow_negative_numbers = true)]
    pub cost: Option<i64>,
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

/// An operand behind the gate or method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplainOperand {
    /// The path of a request, with its query.
    Path(String),
    /// An attribute and its value.
    Attribute(String, String),
}

fn parse_operand(text: &str) -> Result<ExplainOperand, String> {
    if text.starts_with('/') {
        return Ok(ExplainOperand::Path(text.to_owned()));
    }
    parse_attribute(text).map(|(name, value)| ExplainOperand::Attribute(name, value))
}
