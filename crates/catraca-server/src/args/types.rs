//! The arguments of `catraca types`.

use std::path::PathBuf;

use clap::ValueEnum;

const TYPES: &str = "\
Examples:
  catraca types --lang ts -c shop.toml > gates.ts
  catraca types --lang ts --configs -c shop.toml > limits.ts
  catraca types --lang go -c shop.toml > gates/gates.go

An attribute is optional if a check may leave it out: one of several alternatives (`a|b`) or of
several of `each`, one of a policy with `on_missing = \"skip\"` or `otherwise`, or one that only
tiers and ban rules read.";

/// Print the gates of a catalog, each with the attributes that its policies read.
#[derive(Debug, clap::Args)]
#[command(after_help = TYPES)]
pub struct TypesArgs {
    /// The language
    #[arg(long, value_name = "ts|go", hide_possible_values = true)]
    pub lang: TypesLanguage,
    /// Also print RATE_LIMIT_CONFIGS for the helpers of @catraca/client/checkout (ts)
    #[arg(long)]
    pub configs: bool,
    /// The catalog
    #[arg(short, long, alias = "config", value_name = "FILE", required_unless_present = "file")]
    pub catalog: Option<PathBuf>,
    /// The catalog, as `lint` spells it; instead of --catalog
    #[arg(value_name = "FILE", conflicts_with = "catalog")]
    pub file: Option<PathBuf>,
}

/// The languages of `--lang`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TypesLanguage {
    /// TypeScript
    Ts,
    /// Go
    Go,
}
