//! `catraca hash`: prints the hash by which a catalog states facts about a value.
//!
//! The value must not be an argument: other users can see the arguments of a process.

use std::io::{Read, Write, stdin};

use anyhow::{Context, Result, ensure};
use catraca::core::facts::hash_value;
use catraca::core::request::VALUE_BYTES_MAX;
use catraca::core::select::normalise;

use crate::args::HashArgs;
use crate::exit::Exit;
use crate::render::StdoutPipe;

/// Prints the hash of the value on standard input.
pub fn run(args: &HashArgs) -> Result<Exit> {
    let mut text = String::new();
    let most = VALUE_BYTES_MAX as u64 + 2;
    stdin().lock().take(most).read_to_string(&mut text).context("cannot read standard input")?;
    let value = text.strip_suffix('\n').unwrap_or(&text);
    let value = value.strip_suffix('\r').unwrap_or(value);
    ensure!(!value.is_empty(), "standard input has no value; write: printf %s VALUE | catraca …");
    ensure!(value.len() <= VALUE_BYTES_MAX, "a value has at most {VALUE_BYTES_MAX} bytes");
    let normal = match &args.catalog {
        Some(file) => {
            let catalog = super::catalog(file)?;
            let normal = normalise(&catalog, &args.attribute, value);
            normal.map_err(|refusal| anyhow::anyhow!("{refusal}"))?.into_owned()
        }
        None => value.to_owned(),
    };
    writeln!(StdoutPipe::stdout(), "{}", hash_value(&args.attribute, &normal))?;
    Ok(Exit::Yes)
}
