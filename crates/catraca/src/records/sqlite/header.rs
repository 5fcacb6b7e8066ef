//! The first bytes of the records file and of its write-ahead log, read before SQLite opens them.
//!
//! SQLite takes a file that is shorter than its header for an empty database, and a log with
//! another header for an empty log, and overwrites both.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::file::beside;
use super::migrate::APPLICATION;
use crate::records::error::OpenError;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;
/// Where the header has the `application_id`, big-endian.
const APPLICATION_AT: usize = 68;
/// The first bytes of a write-ahead log without their last bit, which is the byte order.
const WAL_MAGIC: [u8; 4] = [0x37, 0x7f, 0x06, 0x82];
const WAL_HEADER_BYTES: usize = 32;

/// Refuses a file that is no database of this program, and a log that is none.
pub(super) fn check(path: &Path) -> Result<(), OpenError> {
    let corrupt = |reason: String| OpenError::Corrupt { path: path.to_owned(), reason };
    let header = first_bytes(path, HEADER_BYTES).map_err(|error| OpenError::io(path, &error))?;
    if header.len() < HEADER_BYTES {
        return Err(corrupt(format!("the file has only {} bytes", header.len())));
    }
    if !header.starts_with(MAGIC) {
        return Err(corrupt("the file is not a database".to_owned()));
    }
    if header[APPLICATION_AT..][..4] != APPLICATION.to_be_bytes()[4..] {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    check_log(path)
}

/// A log may be cut off or all zeros after a power failure: then it was not synced, and nothing in
/// it was acknowledged.
fn check_log(path: &Path) -> Result<(), OpenError> {
    let log = beside(path, "-wal");
    let header = match first_bytes(&log, WAL_HEADER_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|error| OpenError::io(&log, &error))?,
    };
    let is_unsynced = header.iter().all(|byte| *byte == 0);
    let expected = &WAL_MAGIC[..header.len().min(3)];
    let is_log =
        header.starts_with(expected) && header.get(3).is_none_or(|last| last & !1 == WAL_MAGIC[3]);
    if is_unsynced || is_log {
        return Ok(());
    }
    let reason = format!(
        "{} is not the write-ahead log of this file, and acknowledged acts may be missing",
        log.display()
    );
    Err(OpenError::Corrupt { path: path.to_owned(), reason })
}

fn first_bytes(path: &Path, count: usize) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(count as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
