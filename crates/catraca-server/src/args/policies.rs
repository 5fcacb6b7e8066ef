//! The arguments of `catraca policies`.

use std::path::PathBuf;

use clap::ValueEnum;

const POLICIES: &str = "\
Examples:
  catraca policies -c shop.toml                           a table for the terminal
  catraca policies -c shop.toml --group payments          of one group
  catraca policies -c shop.toml -o markdown > limits.md   a table for a document

A policy has a row for itself, and one for each of its tiers and ban rules. `catraca config show`
prints the policies that a server has in use.";

/// Print the policies of a catalog: whom they count, limits, blocks and messages.
#[derive(Debug, clap::Args)]
#[command(after_help = POLICIES)]
pub struct PoliciesArgs {
    /// Only policies of this group
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// The catalog
    #[arg(short, long, alias = "config", value_name = "FILE", required_unless_present = "file")]
    pub catalog: Option<PathBuf>,
    /// The catalog, as `lint` spells it; instead of --catalog
    #[arg(value_name = "FILE", conflicts_with = "catalog")]
    pub file: Option<PathBuf>,
    /// The format of the table
    #[arg(
        short,
        long,
        value_name = "human|json|markdown",
        hide_possible_values = true,
        default_value = "human"
    )]
    pub output: PoliciesFormat,
}

/// The formats of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PoliciesFormat {
    /// For a terminal
    Human,
    /// A list of objects
    Json,
    /// A table of a document
    Markdown,
}
