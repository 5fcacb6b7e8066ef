//! Writing a snapshot: beside its place first, moved there only when the disk has it.
//!
//! Must not hold more than one shard, nor a shard while the disk is busy.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::record::encode;
use super::{END, FORMAT, MAGIC, Snapshotted};
use crate::memory::Memory;

pub(super) fn write(memory: &Memory, path: &Path) -> io::Result<Snapshotted> {
    let draft = draft_of(path);
    let written = write_draft(memory, &draft).and_then(|written| {
        fs::rename(&draft, path)?;
        sync_folder(path)?;
        Ok(written)
    });
    if written.is_err() {
        // The first error is the one to tell; a draft that stays is overwritten next time.
        let _ = fs::remove_file(&draft);
    }
    written
}

fn draft_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".tmp");
    PathBuf::from(name)
}

fn write_draft(memory: &Memory, draft: &Path) -> io::Result<Snapshotted> {
    let mut sealed = Sealed::new(create(draft)?);
    let created_at = memory.clock.now();
    sealed.write(&MAGIC)?;
    sealed.write(&FORMAT.to_le_bytes())?;
    sealed.write(&created_at.micros().to_le_bytes())?;
    let cells = write_cells(memory, &mut sealed)?;
    sealed.write(&[END])?;
    sealed.write(&cells.to_le_bytes())?;
    let bytes = sealed.finish()?;
    Ok(Snapshotted { created_at, cells, bytes })
}

fn write_cells(memory: &Memory, to: &mut Sealed) -> io::Result<u64> {
    let mut cells = 0;
    let mut records = Vec::new();
    for shard in &memory.shards {
        records.clear();
        cells += encode(&mut shard.0.lock(), memory.clock.now(), &mut records);
        to.write(&records)?;
    }
    Ok(cells)
}

/// Whoever reads the file reads tickets, so it is the owner's alone.
fn create(draft: &Path) -> io::Result<File> {
    match fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(draft)
}

/// The move itself is only safe once the folder is on disk.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// A file that ends with the checksum of all before.
struct Sealed {
    file: BufWriter<File>,
    hash: blake3::Hasher,
    bytes: u64,
}

impl Sealed {
    fn new(file: File) -> Self {
        Self { file: BufWriter::new(file), hash: blake3::Hasher::new(), bytes: 0 }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn finish(mut self) -> io::Result<u64> {
        let seal = *self.hash.finalize().as_bytes();
        self.file.write_all(&seal)?;
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        Ok(self.bytes + seal.len() as u64)
    }
}
