//! Snapshots: all cells in one file, so that a restart loses only what came after the last one.
//!
//! The file is written under a temporary name and renamed when it is on disk. Shards are copied one
//! after the other, so a batch over two shards may be in it by half; that is no worse than losing
//! the changes after a snapshot. A damaged file must never count as an empty store: that would end
//! every block.
//!
//! Layout: [`MAGIC`], [`FORMAT`] (`u32`), the instant (`i64`), the sequence of the records database
//! (`u64`, since format 2), the records, [`END`], the number of records (`u64`), and the BLAKE3
//! checksum of all bytes before. Integers are little-endian.

mod cell_record;
mod read;
mod write;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use catraca_core::time::Time;

use super::{Memory, MemoryOptions};
use crate::clock::Clock;

/// The first bytes of every snapshot.
const MAGIC: [u8; 8] = *b"CATRACA\n";
/// The format that is written, and the newest that is read.
const FORMAT: u32 = 2;
/// The format without the sequence of the records database.
const FORMAT_WITHOUT_SEQUENCE: u32 = 1;
/// Instead of a cell kind: the end of the records. No kind has the number 0.
const END: u8 = 0;

/// Statistics of a written snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSummary {
    /// When the snapshot was begun.
    #[doc(hidden)]
    pub created_at: Time,
    /// The number of cells.
    pub cells: u64,
    /// The size of the file.
    pub bytes: u64,
    /// Why the number of acknowledged records could not be read, if so: the snapshot then contains
    /// the one that was last known.
    pub sequence_error: Option<String>,
}

/// What was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// No file: the store starts empty.
    Missing,
    /// A complete, undamaged file.
    Read {
        /// When the snapshot was begun.
        #[doc(hidden)]
        created_at: Time,
        /// What the records database had acknowledged at that time; zero if the snapshot does not
        /// say.
        sequence: u64,
        /// Cells that were restored.
        kept: u64,
        /// Cells that have expired since.
        forgotten: u64,
        /// Cells for which the store has no room, because its limits were lowered.
        left_out: u64,
    },
}

impl SnapshotSummary {
    /// When the snapshot was begun.
    pub fn created_at(&self) -> SystemTime {
        self.created_at.into()
    }
}

impl RestoreOutcome {
    /// When the snapshot was begun; absent if there was no file.
    pub fn created_at(&self) -> Option<SystemTime> {
        match self {
            Self::Missing => None,
            Self::Read { created_at, .. } => Some((*created_at).into()),
        }
    }
}

/// Why a snapshot could not be written or read.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file could not be written. An older file is unchanged.
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file could not be read.
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is damaged, or is not a snapshot.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The builder has no secret, so the keys of the snapshot would not match.
    NoSecret {
        /// The file.
        path: PathBuf,
    },
    /// A newer version of the program wrote the file.
    Newer {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: u32,
        /// The newest format that this program reads.
        known: u32,
    },
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { path, source } => {
                write!(f, "cannot write the snapshot {}: {source}", path.display())
            }
            Self::Read { path, source } => {
                write!(f, "cannot read the snapshot {}: {source}", path.display())
            }
            Self::Corrupt { path, reason } => write!(
                f,
                "the snapshot {} is damaged: {reason}; restore an older copy, or rename it to \
                 start empty",
                path.display()
            ),
            Self::NoSecret { path } => write!(
                f,
                "the snapshot {} can only be read with the secret that it was made with: set \
                 that secret on the builder first",
                path.display()
            ),
            Self::Newer { path, found, known } => write!(
                f,
                "the snapshot {} has format {found}, and this program reads formats up to \
                 {known}: start the newer version, or rename the file to start empty",
                path.display()
            ),
        }
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Write { source, .. } | Self::Read { source, .. } => Some(source),
            Self::Corrupt { .. } | Self::NoSecret { .. } | Self::Newer { .. } => None,
        }
    }
}

impl Memory {
    /// Writes all unexpired cells into a file, which is replaced as a whole or not at all.
    pub fn snapshot(&self, path: &Path) -> Result<SnapshotSummary, SnapshotError> {
        self.snapshot_with_sequence(path, 0)
    }

    /// As [`Memory::snapshot`], with the sequence that the records database had before it.
    pub fn snapshot_with_sequence(
        &self,
        path: &Path,
        sequence: u64,
    ) -> Result<SnapshotSummary, SnapshotError> {
        let _one_at_a_time = self.snapshot.lock();
        let failed = |source| SnapshotError::Write { path: path.to_owned(), source };
        write::write(self, path, sequence).map_err(failed)
    }

    /// Builds a store with the cells of a snapshot, and reports what was read. A missing file is a
    /// first start; any other problem is an error that names the file.
    pub fn restore(
        path: &Path,
        options: MemoryOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, RestoreOutcome), SnapshotError> {
        Self::new(options, clock).with_snapshot(path)
    }

    /// Adds the cells of a snapshot to an empty store.
    pub(crate) fn with_snapshot(
        mut self,
        path: &Path,
    ) -> Result<(Self, RestoreOutcome), SnapshotError> {
        let restored = read::read(&mut self, path)?;
        Ok((self, restored))
    }
}
