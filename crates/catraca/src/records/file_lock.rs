//! A file lock that lets one process at a time open a SQLite records file.
//!
//! The lock is on a file of its own, `FILE.lock`, and ends with the process, also when it is
//! killed. The process id in that file is only for the error message: the operating system's lock
//! decides.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::error::OpenError;
use super::sqlite::beside;

/// The lock, held until this value is dropped.
#[derive(Debug)]
pub(super) struct FileLock(#[expect(dead_code, reason = "held, not read")] File);

impl FileLock {
    /// Takes the lock; the error names the process that holds it.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        refuse_second_name(path)?;
        // A symbolic link to the records must lead to the same lock file.
        let real_path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let lock_path = beside(&real_path, ".lock");
        let failed = |error| OpenError::io(&lock_path, &error);
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(path, &mut file)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        write_holder(&mut file).map_err(failed)?;
        Ok(Self(file))
    }
}

/// Each hard link would get a lock file of its own, and two processes could open the same data.
fn refuse_second_name(path: &Path) -> Result<(), OpenError> {
    match path.metadata() {
        Ok(found) if !found.is_file() => {
            Err(OpenError::io(path, &std::io::Error::other("it is not a regular file")))
        }
        Ok(found) if found.nlink() > 1 => {
            let why = "the file has a second name (a hard link): remove one of the two";
            Err(OpenError::io(path, &std::io::Error::other(why)))
        }
        _ => Ok(()),
    }
}

fn write_holder(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn in_use(path: &Path, file: &mut File) -> OpenError {
    let mut holder = String::new();
    let is_readable = file.read_to_string(&mut holder).is_ok() && !holder.trim().is_empty();
    let holder = if is_readable {
        format!("process {}", holder.trim())
    } else {
        "another process".to_owned()
    };
    OpenError::InUse { path: path.to_owned(), holder }
}
