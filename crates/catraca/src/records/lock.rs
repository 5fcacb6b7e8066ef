//! The lock that lets one process at a time have the records.
//!
//! It lives in a file of its own beside them and ends with the process, however that ends. Must
//! not trust the number written in it: that is for people.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::error::OpenError;
use super::sqlite::beside;

/// The records are ours while this lives.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl Lock {
    /// Takes the lock, or says who has it.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        refuse_second_name(path)?;
        // The file may be called by another name, through a link.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let place = beside(&real, ".lock");
        let failed = |error| OpenError::io(&place, &error);
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&place)
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

/// A lock beside one name would not be seen from the other.
fn refuse_second_name(path: &Path) -> Result<(), OpenError> {
    match path.metadata() {
        Ok(found) if !found.is_file() => {
            Err(OpenError::io(path, &std::io::Error::other("it is not a regular file")))
        }
        Ok(found) if found.nlink() > 1 => {
            let why = "the file has a second name, a hard link; remove one of them";
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
    let known = file.read_to_string(&mut holder).is_ok() && !holder.trim().is_empty();
    let holder =
        if known { format!("process {}", holder.trim()) } else { "another process".to_owned() };
    OpenError::InUse { path: path.to_owned(), holder }
}
