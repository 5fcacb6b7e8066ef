//! Backups: a copy while work goes on, and the way back.
//!
//! Must not overwrite anything, nor put back what is damaged.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use catraca_core::time::Span;
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use super::carry::carry;
use super::{
    beside, check, exists, flags, migrate, move_into_place, new_file, opening, own_file,
    sync_folder,
};
use crate::records::error::{OpenError, RecordsError};
use crate::records::lock::Lock;

/// Copies all pages of one instant; writers go on meanwhile.
pub(super) fn backup(connection: &Connection, to: &Path) -> Result<(), RecordsError> {
    let failed = |error: io::Error| {
        RecordsError(format!("cannot write the backup {}: {error}", to.display()))
    };
    if to.exists() {
        return Err(taken(to));
    }
    let draft = Draft::beside(to).map_err(failed)?;
    let mut copy = Connection::open_with_flags(&draft.0, flags())?;
    // All pages in one step: the copy is of one instant, and a writer cannot make it start again.
    Backup::new(connection, &mut copy)?.step(-1)?;
    // A copy travels as one file.
    copy.pragma_update(None, "journal_mode", "DELETE")?;
    drop(copy);
    draft.appear(to).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => taken(to),
        _ => failed(error),
    })
}

fn taken(to: &Path) -> RecordsError {
    RecordsError(format!(
        "{} exists already: name another file, so that no backup is overwritten",
        to.display()
    ))
}

/// A file that nobody else writes, beside its later place; gone unless it is needed.
struct Draft(PathBuf);

impl Draft {
    fn beside(to: &Path) -> io::Result<Self> {
        let process = std::process::id();
        for number in 0..DRAFTS_MAX {
            let draft = beside(to, &format!(".{process}-{number}.new"));
            match own_file(&draft) {
                Ok(_) => return Ok(Self(draft)),
                // Another backup of this process, or of one that was killed and had its number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("there are many unfinished backups (*.new) beside it: remove them"))
    }

    /// Gives it its name, unless somebody has taken that meanwhile.
    fn appear(&self, to: &Path) -> io::Result<()> {
        File::open(&self.0)?.sync_all()?;
        match fs::hard_link(&self.0, to) {
            // Some file systems know no second name; then the look from before must do.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !to.exists() => {
                fs::rename(&self.0, to)?;
            }
            linked => linked?,
        }
        sync_folder(to)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // One that has become the backup itself is not there any more.
        let _ = fs::remove_file(&self.0);
    }
}

/// Unfinished backups beside one name, at most.
const DRAFTS_MAX: u32 = 1_000;

/// Copies records that another process may have open, to a file that must not exist yet. The copy
/// is of one instant, and appears whole or not at all.
pub fn back_up(records: &Path, to: &Path) -> Result<(), OpenError> {
    if !exists(records)? {
        return Err(OpenError::io(records, &io::ErrorKind::NotFound.into()));
    }
    if to.exists() {
        return Err(OpenError::Exists { path: to.to_owned() });
    }
    let failed = |error| opening(records, error);
    let connection = Connection::open_with_flags(records, flags()).map_err(failed)?;
    connection.busy_timeout(std::time::Duration::from_secs(5)).map_err(failed)?;
    connection.pragma_update(None, "query_only", true).map_err(failed)?;
    migrate::recognise(&connection, records)?;
    backup(&connection, to)
        .map_err(|RecordsError(reason)| OpenError::Failed { path: records.to_owned(), reason })
}

/// What putting a backup back came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBack {
    /// Where what was there is now, if anything was.
    pub old: Option<PathBuf>,
    /// For how long the next start grants no locks, since leases that the backup has never heard
    /// of may be in force. Zero if there never were any.
    pub locks_wait: Span,
}

/// Puts a backup where records are to be. The place must be free and nobody may have it open.
pub fn put_back(backup: &Path, records: &Path) -> Result<PutBack, OpenError> {
    let _lock = Lock::take(records)?;
    if exists(records)? {
        return Err(OpenError::Exists { path: records.to_owned() });
    }
    let (new, locks_wait) = ready_copy(backup, records)?;
    move_into_place(&new, records).map_err(|error| OpenError::io(records, &error))?;
    Ok(PutBack { old: None, locks_wait })
}

/// Puts a backup in the place of records, which nobody may have open. What is there, sound or
/// damaged, is kept beside it.
pub fn put_back_over(backup: &Path, records: &Path) -> Result<PutBack, OpenError> {
    let _lock = Lock::take(records)?;
    let (new, locks_wait) = ready_copy(backup, records)?;
    let failed = |error: io::Error| OpenError::io(records, &error);
    let old = set_aside(records).map_err(failed)?;
    move_into_place(&new, records).map_err(failed)?;
    Ok(PutBack { old, locks_wait })
}

/// A sound copy whose locks go on from those that it replaces, and how long they wait.
fn ready_copy(backup: &Path, records: &Path) -> Result<(PathBuf, Span), OpenError> {
    let new = sound_copy(backup, records)?;
    let replaced = records.is_file().then_some(records);
    match carry(&new, replaced) {
        Ok(wait) => Ok((new, wait)),
        Err(error) => {
            fs::remove_file(&new).map_err(|error| OpenError::io(records, &error))?;
            Err(opening(backup, error))
        }
    }
}

/// A copy beside its later place, looked through and ready to be moved there.
fn sound_copy(backup: &Path, records: &Path) -> Result<PathBuf, OpenError> {
    let failed = |error: io::Error| OpenError::io(backup, &error);
    if !exists(backup)? {
        return Err(failed(io::ErrorKind::NotFound.into()));
    }
    let new = beside(records, ".new");
    // Not the system's copy: that would also give it the rights of the backup's file.
    let mut copy = new_file(&new).map_err(|error| OpenError::io(records, &error))?;
    let copied = File::open(backup).and_then(|mut backup| io::copy(&mut backup, &mut copy));
    let sound = copied.map_err(failed).and_then(|_| look_through(&new, backup));
    if let Err(error) = sound {
        fs::remove_file(&new).map_err(failed)?;
        return Err(error);
    }
    Ok(new)
}

/// Moves records away with their log, without which they may not be whole, and which must never be
/// read with others.
fn set_aside(records: &Path) -> io::Result<Option<PathBuf>> {
    let there = |ending: &str| beside(records, ending).exists();
    if !there("") && !there("-wal") {
        return Ok(None);
    }
    let names = std::iter::once(".old".to_owned()).chain((2..).map(|nth| format!(".old-{nth}")));
    let free = |name: &String| !there(name) && !there(&format!("{name}-wal"));
    let name = names.into_iter().find(free).unwrap_or_default();
    for ending in ["", "-wal"] {
        if there(ending) {
            fs::rename(beside(records, ending), beside(records, &format!("{name}{ending}")))?;
        }
    }
    if there("-shm") {
        fs::remove_file(beside(records, "-shm"))?;
    }
    Ok(Some(beside(records, &name)))
}

fn look_through(copy: &Path, backup: &Path) -> Result<(), OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let mut connection =
        Connection::open_with_flags(copy, flags).map_err(|error| opening(backup, error))?;
    migrate::migrate(&mut connection, backup)?;
    check(&connection, backup)
}
