//! `catraca explain`: a gate by its name, or a request by its method and path.

use std::path::PathBuf;

use super::{Output, attribute};

const EXPLAIN: &str = "\
Examples:
  catraca explain -c shop.toml login ip=198.51.100.7
  catraca explain -c dict.toml lookup participant=12345678 payer=11144477735 --cost 5
  catraca explain -c shop.toml login ip=198.51.100.7 -o json
  catraca explain -c shop.toml POST '/api/orders/7?q=1' ip=198.51.100.7

METHOD and PATH find the gate by the catalog's routes, and give the attributes that these read from
the path and the query; what they read from headers is given by hand. Nothing is charged, and what
was charged before does not matter: this is about the catalog alone.";

/// Which policies a request meets, with which key, tier and price, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = EXPLAIN)]
pub struct Explain {
    /// The catalog
    #[arg(short, long, alias = "config", value_name = "FILE")]
    pub catalog: PathBuf,
    /// The gate, a single policy, or the method of a request
    #[arg(value_name = "GATE|METHOD PATH")]
    pub gate: String,
    /// What is known of the caller
    #[arg(value_name = "ATTRIBUTE=VALUE", value_parser = told)]
    pub told: Vec<Told>,
    /// Make pseudonyms with this secret, 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// The units the request asks for
    #[arg(long, value_name = "UNITS", allow_negative_numbers = true)]
    pub cost: Option<i64>,
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

/// What `explain` is told behind the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The path of a request, and its query.
    Path(String),
    /// An attribute and its value.
    Attribute(String, String),
}

fn told(text: &str) -> Result<Told, String> {
    if text.starts_with('/') {
        return Ok(Told::Path(text.to_owned()));
    }
    attribute(text).map(|(name, value)| Told::Attribute(name, value))
}
