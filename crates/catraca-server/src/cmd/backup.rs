//! `catraca backup` and `catraca restore`: copies the records of a running server, and restores
//! them while no server runs.
//!
//! A backup does not contain the secret: with both, the pseudonyms in the records could be
//! reversed by trying all values.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use catraca::records::{self, RestoredBackup};

use super::load_catalog;
use crate::args::{BackupArgs, RecordsLocationArgs, RestoreArgs};
use crate::config::StorageConfig;
use crate::exit::Exit;
use crate::render::StdoutPipe;

/// Copies the records to a file.
pub fn backup(args: &BackupArgs) -> Result<Exit> {
    let paths = BackupPaths::find(&args.location)?;
    let from = &paths.records;
    let to = &args.file;
    records::back_up(from, to)?;
    let done = format!("{} is a copy of {}", to.display(), from.display());
    let secret = paths.secret_text();
    let hint = "too, in another place: without that secret no block can be found";
    print_done(&[done, format!("back up {secret} {hint}")])
}

/// Restores the records from a backup.
pub fn restore(args: &RestoreArgs) -> Result<Exit> {
    let paths = BackupPaths::find(&args.location)?;
    let from = &args.file;
    let to = &paths.records;
    let mut messages = Vec::new();
    let hint = "--force replaces them and keeps the old file as *.old";
    let restore = if args.force { records::restore_backup_over } else { records::restore_backup };
    let done = restore(from, to).map_err(|error| match error {
        records::OpenError::Exists { .. } => anyhow::anyhow!("{error}; {hint}"),
        error => error.into(),
    })?;
    if let Some(old) = &done.old {
        messages.push(format!("the old records are now {}", old.display()));
    }
    messages.push(format!("restored {} from {}", to.display(), from.display()));
    if let Some(old) = paths.snapshot.as_deref().map(set_aside).transpose()?.flatten() {
        let old = old.display();
        messages.push(format!("all counters start empty; the old snapshot is now {old}"));
    }
    messages.extend(locks_message(&done));
    if let Some(why) = &done.unread {
        messages.push(format!(
            "the old records cannot be read ({why}): whether they required API keys, and their \
             fencing tokens, are not taken over"
        ));
    }
    let secret = paths.secret_text();
    messages.push(format!("restore {secret} too: without that secret no block can be found"));
    print_done(&messages)
}

/// A message when locks are delayed after the restore: leases granted since the backup may still
/// be valid, and the restored records do not have them.
fn locks_message(done: &RestoredBackup) -> Option<String> {
    let wait = Some(done.locks_wait.ceil_secs()).filter(|seconds| *seconds > 0)?;
    Some(format!(
        "no locks are granted for {wait} s after the next start (503 `locks-starting`), until \
         leases that are newer than the backup have expired"
    ))
}

/// Prints the messages. If that fails, the error still says that the work is done.
fn print_done(messages: &[String]) -> Result<Exit> {
    let written = writeln!(StdoutPipe::stdout(), "{}", messages.join("\n"));
    written.with_context(|| format!("done ({}), but the result cannot be printed", messages[0]))?;
    Ok(Exit::Yes)
}

/// Renames the snapshot to `*.old`, if there is one. It may contain blocks that the restored
/// records do not have: these would deny callers, and no operator could list or release them.
fn set_aside(snapshot: &Path) -> Result<Option<PathBuf>> {
    if !snapshot.try_exists()? {
        return Ok(None);
    }
    let mut old = snapshot.as_os_str().to_owned();
    old.push(".old");
    std::fs::rename(snapshot, &old)
        .with_context(|| format!("cannot rename {}", snapshot.display()))?;
    Ok(Some(old.into()))
}

/// The files that a backup or restore concerns.
struct BackupPaths {
    records: PathBuf,
    snapshot: Option<PathBuf>,
    secret: Option<PathBuf>,
}

impl BackupPaths {
    fn find(location: &RecordsLocationArgs) -> Result<Self> {
        let Some(file) = &location.catalog else {
            let records = location.records.clone();
            let records = records.context("give the records with --catalog or --records")?;
            return Ok(Self { records, snapshot: None, secret: None });
        };
        let folder = file.parent().unwrap_or(Path::new(""));
        let Some(config) = StorageConfig::resolve(&load_catalog(file)?.process, folder)? else {
            bail!("{} has no records: `[records] url = \"none\"`", file.display());
        };
        let records = config.file.with_context(|| {
            format!("{} has its records in PostgreSQL: use pg_dump", file.display())
        })?;
        Ok(Self { records, snapshot: Some(config.snapshot), secret: Some(config.secret) })
    }

    /// The file of the secret; with `--records`, the catalog that names it is not known.
    fn secret_text(&self) -> String {
        match &self.secret {
            Some(secret) => secret.display().to_string(),
            None => "the file of `[auth] secret_file`".to_owned(),
        }
    }
}
