//! Reading a snapshot: every byte is checked before the store is used.
//!
//! Must not allocate what the file only claims to hold.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use catraca_core::codec::Kind;
use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::record::{Admitted, admit};
use super::{END, FORMAT, MAGIC, Restored, SnapshotError};
use crate::memory::Memory;

pub(super) fn read(memory: &mut Memory, path: &Path) -> Result<Restored, SnapshotError> {
    // Before it is opened: a pipe would wait for somebody to write.
    let file = match path.metadata() {
        Ok(found) if !found.is_file() => Err(io::Error::other("it is not a regular file")),
        _ => File::open(path),
    };
    let file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Restored::Missing),
        Err(error) => return Err(Trouble::Io(error).at(path)),
    };
    Source::new(file).read_into(memory).map_err(|trouble| trouble.at(path))
}

/// What went wrong, before it is known where.
enum Trouble {
    Io(io::Error),
    Newer(u32),
    Corrupt(String),
}

impl Trouble {
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

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Corrupt("it ends too early".to_owned()),
            _ => Self::Io(error),
        }
    }
}

/// A file being read, with the checksum of what was read so far.
struct Source {
    file: BufReader<File>,
    hash: blake3::Hasher,
}

impl Source {
    fn new(file: File) -> Self {
        Self { file: BufReader::new(file), hash: blake3::Hasher::new() }
    }

    fn read_into(mut self, memory: &mut Memory) -> Result<Restored, Trouble> {
        let created_at = self.header()?;
        let mut tally = Tally::default();
        let now = memory.clock.now();
        while let Some(kind) = self.kind(tally.records)? {
            let admitted = self.record(kind, memory, now);
            tally.add(admitted.map_err(|trouble| trouble.in_record(tally.records))?);
        }
        self.trailer(tally.records)?;
        let Tally { kept, forgotten, left_out, .. } = tally;
        Ok(Restored::Read { created_at, kept, forgotten, left_out })
    }

    fn header(&mut self) -> Result<Time, Trouble> {
        if self.take::<8>()? != MAGIC {
            return Err(Trouble::Corrupt("it is no snapshot of this program".to_owned()));
        }
        match u32::from_le_bytes(self.take()?) {
            FORMAT => Ok(Time::from_micros(i64::from_le_bytes(self.take()?))),
            0 => Err(Trouble::Corrupt("it has format 0, which never was".to_owned())),
            found => Err(Trouble::Newer(found)),
        }
    }

    /// The kind of the next record, or none after the last.
    fn kind(&mut self, record: u64) -> Result<Option<Kind>, Trouble> {
        let [number] = self.take()?;
        if number == END {
            return Ok(None);
        }
        let unknown = || Trouble::Corrupt(format!("record {record} has unknown kind {number}"));
        Kind::from_number(number).map(Some).ok_or_else(unknown)
    }

    fn record(&mut self, kind: Kind, memory: &mut Memory, now: Time) -> Result<Admitted, Trouble> {
        let key = Key::from_bytes(self.take()?);
        let length = u32::from_le_bytes(self.take()?);
        let bytes = self.take_long(length)?;
        let shard = memory.shards[key.shard(memory.bits)].0.get_mut();
        admit(shard, kind, key, &bytes, now).map_err(|error| Trouble::Corrupt(error.to_string()))
    }

    fn trailer(&mut self, records: u64) -> Result<(), Trouble> {
        let claimed = u64::from_le_bytes(self.take()?);
        let seal = *self.hash.finalize().as_bytes();
        if self.take::<32>()? != seal {
            return Err(Trouble::Corrupt("its checksum does not match".to_owned()));
        }
        if claimed != records {
            return Err(Trouble::Corrupt(format!("{records} records instead of {claimed}")));
        }
        match self.file.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(Trouble::Corrupt("it goes on after its end".to_owned())),
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Trouble> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        self.hash.update(&bytes);
        Ok(bytes)
    }

    /// Grows with what is there, not with what is claimed.
    fn take_long(&mut self, length: u32) -> Result<Vec<u8>, Trouble> {
        let mut bytes = Vec::new();
        (&mut self.file).take(u64::from(length)).read_to_end(&mut bytes)?;
        if bytes.len() < length as usize {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        self.hash.update(&bytes);
        Ok(bytes)
    }
}

/// What became of the records.
#[derive(Default)]
struct Tally {
    records: u64,
    kept: u64,
    forgotten: u64,
    left_out: u64,
}

impl Tally {
    fn add(&mut self, admitted: Admitted) {
        self.records += 1;
        match admitted {
            Admitted::Kept => self.kept += 1,
            Admitted::Forgotten => self.forgotten += 1,
            Admitted::NoRoom => self.left_out += 1,
        }
    }
}
