//! Writes a snapshot under a temporary name, and renames it when it is on disk.
//!
//! At most one shard is locked at a time, and none during a write to disk: it is copied into a
//! buffer first.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::cell_record::{encode, encode_overflow};
use super::{END, FORMAT, MAGIC, SnapshotSummary};
use crate::memory::Memory;

pub(super) fn write(memory: &Memory, path: &Path, sequence: u64) -> io::Result<SnapshotSummary> {
    let temporary = temporary_path(path);
    let written = write_temporary(memory, &temporary, sequence).and_then(|written| {
        fs::rename(&temporary, path)?;
        sync_folder(path)?;
        Ok(written)
    });
    if written.is_err() {
        // The first error is returned. If the temporary file cannot be removed, the next snapshot
        // overwrites it.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn temporary_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".tmp");
    PathBuf::from(name)
}

fn write_temporary(
    memory: &Memory,
    temporary: &Path,
    sequence: u64,
) -> io::Result<SnapshotSummary> {
    let mut file = ChecksummedFile::new(create(temporary)?);
    let created_at = memory.clock.now();
    file.write(&MAGIC)?;
    file.write(&FORMAT.to_le_bytes())?;
    file.write(&created_at.micros().to_le_bytes())?;
    file.write(&sequence.to_le_bytes())?;
    let cells = write_cells(memory, &mut file)?;
    file.write(&[END])?;
    file.write(&cells.to_le_bytes())?;
    let bytes = file.finish()?;
    Ok(SnapshotSummary { created_at, cells, bytes, sequence_error: None })
}

fn write_cells(memory: &Memory, to: &mut ChecksummedFile) -> io::Result<u64> {
    let mut cells = 0;
    let mut records = Vec::new();
    for shard in &memory.shards {
        records.clear();
        // The lock ends with this statement, before the write to disk. The clock is read after the
        // shard is locked, since arguments are evaluated in order.
        cells += encode(&mut shard.0.lock(), memory.clock.now(), &mut records);
        to.write(&records)?;
    }
    records.clear();
    cells += encode_overflow(&memory.overflow.lock(), memory.clock.now(), &mut records);
    to.write(&records)?;
    Ok(cells)
}

/// The file contains the bodies of tickets, so only its owner may read it. The mode applies to new
/// files only, so a leftover file is removed first.
fn create(temporary: &Path) -> io::Result<File> {
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(temporary)
}

/// A rename survives a crash only after the folder is synced.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// A file that ends with the checksum of all bytes before.
struct ChecksummedFile {
    file: BufWriter<File>,
    hash: blake3::Hasher,
    bytes: u64,
}

impl ChecksummedFile {
    fn new(file: File) -> Self {
        Self { file: BufWriter::new(file), hash: blake3::Hasher::new(), bytes: 0 }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn finish(mut self) -> io::Result<u64> {
        let checksum = *self.hash.finalize().as_bytes();
        self.file.write_all(&checksum)?;
        self.file.flush()?;
        // The content must be on disk before the rename, or a crash could leave an incomplete file
        // under the final name.
        self.file.get_ref().sync_all()?;
        Ok(self.bytes + checksum.len() as u64)
    }
}
