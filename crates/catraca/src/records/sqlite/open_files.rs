//! Notices that the records file was deleted, moved or replaced while it is open.
//!
//! SQLite goes on with the files that it has open. What it commits to a file without its name would
//! not be found at the next start, so it must not be acknowledged as durable. The checks cost two
//! calls of the system, beside a commit that waits for the disk.

use std::path::{Path, PathBuf};

use crate::records::file_lock::{Inode, inode};
use crate::records::sqlite::file::beside;

/// The files that SQLite has open, and the paths where the next start looks for them.
pub(super) struct OpenFiles {
    database: OpenedPath,
    wal: OpenedPath,
}

struct OpenedPath {
    path: PathBuf,
    /// Absent while the file does not exist yet: SQLite may create its log with the first commit.
    opened: Option<Inode>,
}

impl OpenFiles {
    /// The files of a database that was just opened, and its inode.
    pub fn new(path: &Path, database: Inode) -> Self {
        let log = beside(path, "-wal");
        let log_inode = log.metadata().ok().map(|found| inode(&found));
        Self {
            database: OpenedPath { path: path.to_owned(), opened: Some(database) },
            wal: OpenedPath { path: log, opened: log_inode },
        }
    }

    /// Why what was committed would not be found at the next start, if so. Call it after a commit.
    pub fn fault(&mut self) -> Option<String> {
        let lost = self.database.fault().or_else(|| self.wal.fault())?;
        let path = self.database.path.display();
        Some(format!(
            "{lost} while the server has it open, so what is recorded now would be missing after \
             a restart: bring the same file back, or stop the server, which then writes a copy, \
             and run `catraca restore --force --records {path} {path}.rescued`"
        ))
    }
}

impl OpenedPath {
    fn fault(&mut self) -> Option<String> {
        let path = self.path.display();
        match self.path.metadata() {
            Ok(found) if *self.opened.get_or_insert(inode(&found)) == inode(&found) => None,
            Ok(_) => Some(format!("{path} was replaced by another file")),
            Err(_) if self.opened.is_none() => None,
            Err(error) => Some(format!("{path} was deleted or moved ({error})")),
        }
    }
}
