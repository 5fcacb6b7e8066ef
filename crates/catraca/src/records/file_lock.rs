//! A lock that lets one process at a time open a SQLite records file.
//!
//! The lock is on the file itself, by its inode, and ends with the process, also when it is killed.
//! There is no lock file that could be removed while the records are open. A new file is locked
//! under its temporary name, so it is locked before it appears.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use parking_lot::Mutex;

use super::error::OpenError;
use super::sqlite::{beside, create_private_file};

/// The lock, held until this value is dropped.
#[derive(Debug)]
pub(super) struct FileLock {
    inode: Inode,
    /// Closed after the connections to the records: closing any handle of a file drops the locks
    /// that SQLite has on it in this process.
    file: File,
}

/// The device and the inode of a file.
pub(super) type Inode = (u64, u64);

/// The files that this process has locked. They must not be opened a second time, because closing
/// that handle would drop SQLite's own locks.
static LOCKED_HERE: Mutex<BTreeSet<Inode>> = Mutex::new(BTreeSet::new());

impl FileLock {
    /// Locks an existing file; nothing if there is none. The error names the process that has it.
    pub(super) fn take(path: &Path) -> Result<Option<Self>, OpenError> {
        let failed = |error| OpenError::io(path, &error);
        let found = match path.metadata() {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        refuse_second_name(path, &found)?;
        if is_locked_here(&found) {
            return Err(in_use(path, inode(&found)));
        }
        Self::lock(path, File::open(path).map_err(failed)?).map(Some)
    }

    /// Creates an empty file that only its owner may read, and locks it. Replaces the rest of an
    /// earlier attempt, unless another process is just creating the file.
    pub(super) fn create(new: &Path) -> Result<Self, OpenError> {
        let failed = |error| OpenError::io(new, &error);
        // Locked while it is removed, so that no other process removes the file of its successor.
        let _rest = Self::take(new)?;
        for ending in ["", "-journal"] {
            match fs::remove_file(beside(new, ending)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        Self::lock(new, create_private_file(new).map_err(failed)?)
    }

    /// The device and the inode of the locked file.
    pub(super) fn inode(&self) -> Inode {
        self.inode
    }

    /// The locked file; one that was created can be written.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    fn lock(path: &Path, file: File) -> Result<Self, OpenError> {
        let failed = |error| OpenError::io(path, &error);
        let inode = inode(&file.metadata().map_err(failed)?);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(path, inode)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // Another process may have replaced the file before it was locked.
        if self::inode(&path.metadata().map_err(failed)?) != inode {
            return Err(in_use(path, inode));
        }
        LOCKED_HERE.lock().insert(inode);
        Ok(Self { inode, file })
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        LOCKED_HERE.lock().remove(&self.inode);
    }
}

/// Whether this process holds the lock of a file.
pub(super) fn is_locked_here(file: &Metadata) -> bool {
    LOCKED_HERE.lock().contains(&inode(file))
}

pub(super) fn inode(file: &Metadata) -> Inode {
    (file.dev(), file.ino())
}

/// Each name has a write-ahead log of its own: through the second name, data would be missing.
fn refuse_second_name(path: &Path, found: &Metadata) -> Result<(), OpenError> {
    if !found.is_file() {
        return Err(OpenError::io(path, &io::Error::other("it is not a regular file")));
    }
    if found.nlink() > 1 {
        let why = "the file has a second name (a hard link): remove one of the two";
        return Err(OpenError::io(path, &io::Error::other(why)));
    }
    Ok(())
}

fn in_use(path: &Path, inode: Inode) -> OpenError {
    let holder = holder(inode).map(|process| format!("process {process}"));
    let holder = holder.unwrap_or_else(|| "another process".to_owned());
    OpenError::InUse { path: path.to_owned(), holder }
}

/// The process that has locked a file, if the system lists locks (Linux).
fn holder((_, inode): Inode) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // Such as `1: FLOCK  ADVISORY  WRITE 2963 fe:00:5783553 0 EOF`.
    let holder = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, process, file, ..] = words[..] else { return None };
        let is_ours = file.rsplit(':').next()?.parse() == Ok(inode);
        process.parse().ok().filter(|process| is_ours && *process > 0)
    };
    locks.lines().find_map(holder)
}
