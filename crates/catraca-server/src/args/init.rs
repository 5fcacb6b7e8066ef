//! The arguments of `catraca init`, `presets`, `variables` and `hash`.

use std::path::PathBuf;

const INIT: &str = "\
Examples:
  catraca init window-block                       into the new folder window-block
  catraca init booking limits                     into the folder limits
  catraca init booking --env app.env              with the values of an .env file as defaults

`catraca presets` lists the presets. No file is overwritten. The values of --env stay in the unit of
their variable; `catraca variables` prints them again. A variable of another preset is an error,
because the same prefix means seconds in one preset and milliseconds in another.";

/// Write the catalog, the scenarios and a short README of a preset.
#[derive(Debug, clap::Args)]
#[command(after_help = INIT)]
pub struct InitArgs {
    /// The preset
    #[arg(value_name = "PRESET")]
    pub preset: String,
    /// The folder, made if it is missing; by default, one with the name of the preset
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// A file with lines NAME=VALUE, whose values become the defaults of the catalog
    #[arg(long, value_name = "FILE")]
    pub env: Option<PathBuf>,
}

const VARIABLES: &str = "\
Examples:
  catraca variables window-block/catalog.toml > limits.env
  catraca variables -c booking/catalog.toml

Each line is NAME=VALUE, with the environment's value or the default, in the unit that the comment
above it shows. Values of variables in [server], [proxy], [store], [records] and [auth] that are set
in the environment are not printed: they may be passwords.";

/// Print the variables of a catalog with their values, as lines NAME=VALUE.
#[derive(Debug, clap::Args)]
#[command(after_help = VARIABLES)]
pub struct VariablesArgs {
    /// The catalog
    #[arg(short, long, alias = "config", value_name = "FILE", required_unless_present = "file")]
    pub catalog: Option<PathBuf>,
    /// The catalog, as `lint` spells it; instead of --catalog
    #[arg(value_name = "FILE", conflicts_with = "catalog")]
    pub file: Option<PathBuf>,
}

const HASH: &str = "\
Examples:
  printf %s \"$TOKEN\" | catraca hash token
  catraca hash token < token.txt                  one newline at the end is left out
  catraca hash ispb -c dict.toml < ispb.txt       normalised as the catalog says

The value is read from standard input, because other users can see the arguments of a process. In a
catalog, the hash replaces the value:
  [facts.token.\"blake3:...\"]
  plan = \"partner\"
The hash has no secret: use it for long random values, not for values that can be guessed.";

/// Print the hash by which a catalog states facts about a value without containing it.
#[derive(Debug, clap::Args)]
#[command(after_help = HASH)]
pub struct HashArgs {
    /// The attribute
    #[arg(value_name = "ATTRIBUTE")]
    pub attribute: String,
    /// The catalog with the attribute's kind; by default, the value is hashed as it is
    #[arg(short, long, alias = "config", value_name = "FILE")]
    pub catalog: Option<PathBuf>,
}
