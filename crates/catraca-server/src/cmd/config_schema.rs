//! `catraca config schema`: prints the JSON Schema of a catalog, for editors and linters.

use std::io::Write;

use anyhow::Result;

use crate::config::json_schema;
use crate::exit::Exit;
use crate::render::StdoutPipe;

/// Prints the schema.
pub fn run() -> Result<Exit> {
    let mut out = StdoutPipe::stdout();
    writeln!(out, "{:#}", json_schema::document())?;
    Ok(Exit::Yes)
}
