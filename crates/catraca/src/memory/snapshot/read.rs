//! Reads a snapshot. Every byte is verified before the store is used.
//!
//! Lengths in the file are not trusted: memory is allocated only for bytes that are really there.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use catraca_core::cell::CellKind;
use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::cell_record::{RecordAdmission, RestoreTarget, admit};
use super::{END, FORMAT, FORMAT_WITHOUT_SEQUENCE, MAGIC, RestoreOutcome, SnapshotError};
use crate::memory::Memory;

pub(super) fn read(memory: &mut Memory, path: &Path) -> Result<RestoreOutcome, SnapshotError> {
    // Checked before opening: opening a pipe would block until a writer comes.
    let file = match path.metadata() {
        Ok(found) if !found.is_file() => Err(io::Error::other("it is not a regular file")),
        _ => File::open(path),
    };
    let file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(RestoreOutcome::Missing);
        }
        Err(error) => return Err(SnapshotReadError::Io(error).at(path)),
    };
    SnapshotReader::new(file).read_into(memory).map_err(|error| error.at(path))
}

/// A read error without the path of the file.
enum SnapshotReadError {
    Io(io::Error),
    Newer(u32),
    Corrupt(String),
}

impl SnapshotReadError {
    fn at(self, path: &Path) -> SnapshotError {
        let path = path.to_owned();
        match self {
            Self::Io(source) => SnapshotError::Read { path, source },
            Self::Newer(found) => SnapshotError::Newer { path, found, known: FORMAT },
            Self::Corrupt(reason) => SnapshotError::Corrupt { path, reason },
        }
    }

    fn in_record(self, record: u64) -> Self {
        match self {
            Self::Corrupt(reason) => Self::Corrupt(format!("record {record}: {reason}")),
            other => other,
        }
    }
}

impl From<io::Error> for SnapshotReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Corrupt("the file is truncated".to_owned()),
            _ => Self::Io(error),
        }
    }
}

/// A file being read, and the checksum of the bytes read so far.
struct SnapshotReader {
    file: BufReader<File>,
    hash: blake3::Hasher,
}

impl SnapshotReader {
    fn new(file: File) -> Self {
        Self { file: BufReader::new(file), hash: blake3::Hasher::new() }
    }

    fn read_into(mut self, memory: &mut Memory) -> Result<RestoreOutcome, SnapshotReadError> {
        let (created_at, sequence) = self.read_header()?;
        let mut counts = RestoreCounts::default();
        let now = memory.clock.now();
        while let Some(kind) = self.read_kind(counts.records)? {
            let admitted = self.read_record(kind, memory, now);
            counts.add(admitted.map_err(|error| error.in_record(counts.records))?);
        }
        // Cells are inserted before the checksum is verified. On an error the caller drops the
        // whole store, so no unverified cell is used.
        self.verify_trailer(counts.records)?;
        let RestoreCounts { kept, forgotten, left_out, .. } = counts;
        Ok(RestoreOutcome::Read { created_at, sequence, kept, forgotten, left_out })
    }

    /// The instant and the sequence of the records database.
    fn read_header(&mut self) -> Result<(Time, u64), SnapshotReadError> {
        if self.take::<8>()? != MAGIC {
            return Err(SnapshotReadError::Corrupt("not a snapshot file".to_owned()));
        }
        let format = u32::from_le_bytes(self.take()?);
        match format {
            FORMAT_WITHOUT_SEQUENCE | FORMAT => {}
            0 => return Err(SnapshotReadError::Corrupt("invalid format 0".to_owned())),
            found => return Err(SnapshotReadError::Newer(found)),
        }
        let created_at = Time::from_micros(i64::from_le_bytes(self.take()?));
        let has_sequence = format != FORMAT_WITHOUT_SEQUENCE;
        let sequence = if has_sequence { u64::from_le_bytes(self.take()?) } else { 0 };
        Ok((created_at, sequence))
    }

    /// The kind of the next record; none at the end of the records.
    fn read_kind(&mut self, record: u64) -> Result<Option<CellKind>, SnapshotReadError> {
        let [number] = self.take()?;
        if number == END {
            return Ok(None);
        }
        let unknown =
            || SnapshotReadError::Corrupt(format!("record {record} has unknown kind {number}"));
        CellKind::from_number(number).map(Some).ok_or_else(unknown)
    }

    fn read_record(
        &mut self,
        kind: CellKind,
        memory: &mut Memory,
        now: Time,
    ) -> Result<RecordAdmission, SnapshotReadError> {
        let key = Key::from_bytes(self.take()?);
        let length = u32::from_le_bytes(self.take()?);
        let bytes = self.take_bytes(length)?;
        // No lock is needed: no other thread has the store yet.
        let shard = memory.shards[key.shard(memory.bits)].0.get_mut();
        let target = RestoreTarget { shard, overflow: memory.overflow.get_mut() };
        admit(target, kind, key, &bytes, now)
            .map_err(|error| SnapshotReadError::Corrupt(error.to_string()))
    }

    fn verify_trailer(&mut self, records: u64) -> Result<(), SnapshotReadError> {
        let expected = u64::from_le_bytes(self.take()?);
        // Before the next `take`, which would add the stored checksum to the hash.
        let checksum = *self.hash.finalize().as_bytes();
        if self.take::<32>()? != checksum {
            return Err(SnapshotReadError::Corrupt("checksum mismatch".to_owned()));
        }
        if expected != records {
            return Err(SnapshotReadError::Corrupt(format!(
                "{records} records, but the trailer says {expected}"
            )));
        }
        // The checksum must be the end of the file.
        match self.file.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(SnapshotReadError::Corrupt("unexpected bytes after the end".to_owned())),
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], SnapshotReadError> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        self.hash.update(&bytes);
        Ok(bytes)
    }

    /// Reads `length` bytes. The buffer grows with the bytes that arrive: a damaged length must not
    /// allocate 4 GiB.
    fn take_bytes(&mut self, length: u32) -> Result<Vec<u8>, SnapshotReadError> {
        let mut bytes = Vec::new();
        (&mut self.file).take(u64::from(length)).read_to_end(&mut bytes)?;
        if bytes.len() < length as usize {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        self.hash.update(&bytes);
        Ok(bytes)
    }
}

/// Counts the records by what happened to them.
#[derive(Default)]
struct RestoreCounts {
    records: u64,
    kept: u64,
    forgotten: u64,
    left_out: u64,
}

impl RestoreCounts {
    fn add(&mut self, admitted: RecordAdmission) {
        self.records += 1;
        match admitted {
            RecordAdmission::Restored => self.kept += 1,
            RecordAdmission::Expired => self.forgotten += 1,
            RecordAdmission::NoRoom => self.left_out += 1,
        }
    }
}
