//! `catraca keygen`: makes an API key, prints it once, and prints its `[[auth.key]]` table.
//!
//! The key must be written to standard output only; the catalog stores its hash.

use std::io::{Write, stdout};

use anyhow::{Context, Result};

use crate::args::KeygenArgs;
use crate::auth::{hash, plain_name};
use crate::exit::Exit;

/// Prints a new key and its `[[auth.key]]` table.
pub fn run(args: &KeygenArgs) -> Result<Exit> {
    let key = hash::new_key()?;
    let role = args.role.name();
    let mut table = toml::Table::new();
    let hashed = hash::write(&hash::hash(key.as_bytes()));
    // The default name has a part of the hash, so that several keys have different names.
    let default_name = || format!("{role}-{}", &hashed[hashed.len() - 8..]);
    let name = args.name.clone().unwrap_or_else(default_name);
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
        "{key}\n\nThis is the key; it is not shown again. Callers send it as\n\
         `Authorization: Bearer KEY`. The catalog stores only its hash; add these lines to it:\n\n\
         [[auth.key]]\n{table}"
    );
    stdout().write_all(text.as_bytes())?;
    Ok(Exit::Yes)
}
