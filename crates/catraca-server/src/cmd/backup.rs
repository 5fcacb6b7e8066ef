//! `catraca backup` and `catraca restore`: the records, copied while a server goes on and put back
//! while none does.
//!
//! Must not overwrite anything unasked, nor take the secret along: the two belong apart.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use catraca::records::{self, PutBack};

use super::catalog;
use super::serve::Places;
use crate::args::{Backup, Place, Restore};
use crate::exit::Exit;
use crate::render::Outlet;

/// Copies the records to a file.
pub fn backup(args: &Backup) -> Result<Exit> {
    let found = Found::at(&args.place)?;
    let (from, to) = (&found.records, &args.file);
    records::back_up(from, to)?;
    let said = format!("{} is a copy of {}", to.display(), from.display());
    tell_done(&[said, found.about_the_secret("back up")])
}

/// Puts a backup where the records are to be.
pub fn restore(args: &Restore) -> Result<Exit> {
    let found = Found::at(&args.place)?;
    let (from, to) = (&args.file, &found.records);
    let mut said = Vec::new();
    let hint = "--force puts the backup in its place and keeps what is there beside it";
    let put = if args.force { records::put_back_over } else { records::put_back };
    let done = put(from, to).map_err(|error| match error {
        records::OpenError::Exists { .. } => anyhow::anyhow!("{error}; {hint}"),
        error => error.into(),
    })?;
    if let Some(old) = &done.old {
        said.push(format!("what was there is now {}", old.display()));
    }
    said.push(format!("{} holds what {} held", to.display(), from.display()));
    if let Some(old) = found.snapshot.as_deref().map(set_aside).transpose()?.flatten() {
        said.push(format!("counters begin anew; the snapshot of before is now {}", old.display()));
    }
    said.extend(about_locks(&done));
    said.push(found.about_the_secret("bring back"));
    tell_done(&said)
}

/// Leases are of the present, and a backup is of the past.
fn about_locks(done: &PutBack) -> Option<String> {
    let wait = Some(done.locks_wait.ceil_secs()).filter(|seconds| *seconds > 0)?;
    Some(format!(
        "locks wait: for {wait} s after the next start none is granted (503 `locks-starting`), \
         until leases that the backup does not know have run out"
    ))
}

/// Says what was done, when all of it was.
fn tell_done(said: &[String]) -> Result<Exit> {
    let told = writeln!(Outlet::stdout(), "{}", said.join("\n"));
    told.with_context(|| format!("it is done ({}), but this cannot be shown", said[0]))?;
    Ok(Exit::Yes)
}

/// A snapshot knows blocks that the records have never heard of once these are of another past:
/// they would stand, and nobody could find them.
fn set_aside(snapshot: &Path) -> Result<Option<PathBuf>> {
    if !snapshot.try_exists()? {
        return Ok(None);
    }
    let mut old = snapshot.as_os_str().to_owned();
    old.push(".old");
    std::fs::rename(snapshot, &old)
        .with_context(|| format!("cannot set {} aside", snapshot.display()))?;
    Ok(Some(old.into()))
}

/// Where things are.
struct Found {
    records: PathBuf,
    snapshot: Option<PathBuf>,
    secret: Option<PathBuf>,
}

impl Found {
    fn at(place: &Place) -> Result<Self> {
        let Some(config) = &place.config else {
            let records = place.records.clone();
            let records = records.context("say where the records are: --config or --records")?;
            return Ok(Self { records, snapshot: None, secret: None });
        };
        let folder = config.parent().unwrap_or(Path::new(""));
        let Some(places) = Places::read(&catalog(config)?, folder)? else {
            bail!("{} keeps no records: `[records] url = \"none\"`", config.display());
        };
        let records = places.file.with_context(|| {
            format!("{} keeps records in PostgreSQL; use its pg_dump", config.display())
        })?;
        Ok(Self { records, snapshot: Some(places.snapshot), secret: Some(places.secret) })
    }

    fn about_the_secret(&self, act: &str) -> String {
        let file = match &self.secret {
            Some(secret) => secret.display().to_string(),
            None => "the file of `[auth] secret_file`".to_owned(),
        };
        format!("{act} {file} too, apart from it: without that secret no block is found again")
    }
}
