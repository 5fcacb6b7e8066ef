//! The secret that digests and tickets are made with, in a file of its own.
//!
//! Without it nothing that was kept can be found again, so it is never made anew beside records
//! that need the old one. A new one is put above it, and both are known. Must not print it.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use catraca::Secret;

use crate::regular;

const BYTES: usize = 32;

/// The secret of a file, which is made on the first start, when there are no records yet. Records
/// that others may share are in no file, and need a secret that everybody has.
pub fn open(file: &Path, records: Option<&Path>) -> Result<Secret> {
    let shown = file.display();
    match regular::read(file) {
        Ok(text) => read(&text).with_context(|| {
            format!(
                "the secret {shown} is damaged: it must hold {} hexadecimal digits, and older \
                 secrets on the lines below; bring it back from a backup",
                BYTES * 2
            )
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let Some(records) = records else {
                bail!(
                    "the secret {shown} is missing, and a shared store or database may be another \
                     node's too: give every node the same one, made once with `openssl rand -hex \
                     32 > {shown}`, readable by its owner alone"
                );
            };
            if records.exists() {
                bail!(
                    "the records {} were made with the secret {shown}, which is missing: bring it \
                     back, or name it in `[auth] secret_file`; without it no block would be found",
                    records.display()
                );
            }
            make(file).with_context(|| format!("cannot make the secret {shown}"))
        }
        Err(error) => Err(error).with_context(|| format!("cannot read the secret {shown}")),
    }
}

/// The newest secret is on the first line, those before it are below.
fn read(text: &str) -> Option<Secret> {
    let secrets = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(one);
    let secrets: Vec<Secret> = secrets.collect::<Option<_>>()?;
    secrets.into_iter().rev().reduce(|older, newer| newer.after(older))
}

fn one(text: &str) -> Option<Secret> {
    let mut bytes = [0; BYTES];
    if text.len() != BYTES * 2 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[place * 2..place * 2 + 2], 16).ok()?;
    }
    Some(Secret::from_bytes(bytes))
}

/// Whole or not at all, readable by its owner alone, and on disk before anything is made with it.
fn make(file: &Path) -> Result<Secret> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let draft = file.with_extension("new");
    let _ = fs::remove_file(&draft);
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    writeln!(new, "{digits}")?;
    new.sync_all()?;
    fs::rename(&draft, file)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(Secret::from_bytes(bytes))
}
