//! `catraca keygen`: a new key, shown once, and the lines that let it in.
//!
//! Must not write the key anywhere but to standard output.

use std::io::{Write, stdout};

use anyhow::{Context, Result};

use crate::args::Keygen;
use crate::exit::Exit;
use crate::http::{hash, plain_name};

/// Prints a key and its `[[auth.key]]`.
pub fn run(args: &Keygen) -> Result<Exit> {
    let key = hash::new_key()?;
    let role = args.role.name();
    let mut table = toml::Table::new();
    let hashed = hash::write(&hash::hash(key.as_bytes()));
    // A name of its own for every key, so that several can be pasted below each other.
    let usual = || format!("{role}-{}", &hashed[hashed.len() - 8..]);
    let name = args.name.clone().unwrap_or_else(usual);
    plain_name("--name", &name)?;
    table.insert("name".to_owned(), name.into());
    table.insert("role".to_owned(), role.into());
    if let Some(namespace) = &args.namespace {
        plain_name("--namespace", namespace)?;
        table.insert("namespace".to_owned(), namespace.as_str().into());
    }
    table.insert("hash".to_owned(), hashed.into());
    let table = toml::to_string(&table).context("cannot write the key's table")?;
    let text = format!(
        "{key}\n\nThis is the key, and the only time it is shown: callers send it as\n\
         `Authorization: Bearer KEY`. The server keeps its hash; paste this into the catalog:\n\n\
         [[auth.key]]\n{table}"
    );
    stdout().write_all(text.as_bytes())?;
    Ok(Exit::Yes)
}
