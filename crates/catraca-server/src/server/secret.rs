//! The file with the secret of digests and tickets.
//!
//! Stored state can only be found with the secret it was written with, so a missing secret is
//! never replaced beside existing records. To rotate it, a new secret is added above the old one,
//! and both are accepted. Must not be printed.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use catraca::Secret;

use crate::regular_file;

const BYTES: usize = 32;

/// Reads the secret. If the file does not exist, creates it, provided that `records` do not exist
/// yet either. Without `records` (a shared store or database) it is never created: other nodes
/// need the same one.
pub fn open(file: &Path, records: Option<&Path>) -> Result<Secret> {
    let path = file.display();
    match regular_file::read(file) {
        Ok(text) => parse(&text).with_context(|| {
            format!(
                "the secret {path} is damaged: it must have {} hexadecimal digits per line, the \
                 newest secret first; restore it from a backup",
                BYTES * 2
            )
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let Some(records) = records else {
                bail!(
                    "the secret {path} is missing, and other nodes may use the shared store or \
                     database: give every node the same secret, made once with `openssl rand -hex \
                     32 > {path}`, readable by its owner only"
                );
            };
            if records.exists() {
                bail!(
                    "the secret {path} of the records {} is missing: restore it, or set its path \
                     in `[auth] secret_file`; without it no block can be found",
                    records.display()
                );
            }
            create(file).with_context(|| format!("cannot create the secret {path}"))
        }
        Err(error) => Err(error).with_context(|| format!("cannot read the secret {path}")),
    }
}

/// Parses one secret per line, the newest first.
fn parse(text: &str) -> Option<Secret> {
    let secrets = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(parse_line);
    let secrets: Vec<Secret> = secrets.collect::<Option<_>>()?;
    secrets.into_iter().rev().reduce(|older, newer| newer.with_older(older))
}

fn parse_line(text: &str) -> Option<Secret> {
    let mut bytes = [0; BYTES];
    if text.len() != BYTES * 2 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).ok()?;
    }
    Some(Secret::from_bytes(bytes))
}

/// Creates a secret: atomically (by renaming), readable by its owner only, and synced to disk
/// before anything is written that depends on it.
fn create(file: &Path) -> Result<Secret> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let temporary = file.with_extension("new");
    // A file left by a start that was killed here.
    let _ = fs::remove_file(&temporary);
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    writeln!(new, "{digits}")?;
    new.sync_all()?;
    fs::rename(&temporary, file)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Syncs the directory, too: otherwise the rename could be lost in a power failure.
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(Secret::from_bytes(bytes))
}
