//! Snapshots: the whole store in one file, so that a restart forgets at most what came since.
//!
//! A file is written beside its place and moved there when it is safe on disk; one shard is copied
//! after the other, so a batch over two shards may be half in it, as it may be half in what came
//! since. Must not take a damaged file for an empty one: that would free everybody.

mod read;
mod record;
mod write;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catraca_core::time::Time;

use super::{Memory, MemoryOptions};
use crate::clock::Clock;

/// The first bytes of every snapshot.
const MAGIC: [u8; 8] = *b"CATRACA\n";
/// The format that is written, and the newest that is read.
const FORMAT: u32 = 1;
/// In the place of a kind: no more records.
const END: u8 = 0;

/// What a snapshot was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshotted {
    /// When it was begun.
    pub created_at: Time,
    /// How many cells are in it.
    pub cells: u64,
    /// How large the file is.
    pub bytes: u64,
}

/// What a start found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// No file: the store starts empty.
    Missing,
    /// A whole file.
    Read {
        /// When it was begun.
        created_at: Time,
        /// Cells that are in the store again.
        kept: u64,
        /// Cells whose time had come.
        forgotten: u64,
        /// Cells that found no room, because the store was given less.
        left_out: u64,
    },
}

/// Why a snapshot was not written or not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file could not be written; an older one is untouched.
    #[error("cannot write the snapshot {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file could not be read.
    #[error("cannot read the snapshot {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is not what was written.
    #[error(
        "the snapshot {} is damaged: {reason}; bring an older copy, or move it away to start empty",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Nobody said under which secret its keys were made.
    #[error(
        "the keys of the snapshot {} were made with a secret: give the same one to the builder \
         first, or nothing would be found again",
        path.display()
    )]
    NoSecret {
        /// The file.
        path: PathBuf,
    },
    /// A later program wrote it.
    #[error(
        "the snapshot {} has format {found}, and this program reads formats up to {known}: \
         start the newer program, or move the file away to start empty",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that is read here.
        known: u32,
    },
}

impl Memory {
    /// Writes every cell that is not forgotten into a file, which appears whole or not at all.
    pub fn snapshot(&self, path: &Path) -> Result<Snapshotted, SnapshotError> {
        let _one_at_a_time = self.snapshot.lock();
        let failed = |source| SnapshotError::Write { path: path.to_owned(), source };
        write::write(self, path).map_err(failed)
    }

    /// A store with the cells of a snapshot, and what was found of it. A missing file is a first
    /// start; any other trouble is an error that names the file.
    pub fn restore(
        path: &Path,
        options: MemoryOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Restored), SnapshotError> {
        let mut memory = Self::new(options, clock);
        let restored = read::read(&mut memory, path)?;
        Ok((memory, restored))
    }
}
