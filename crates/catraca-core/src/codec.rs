//! Cells as bytes: what snapshots and stores without cells of their own keep.
//!
//! Every encoding opens with its version, so that a later program can read what an earlier one
//! wrote and an earlier one refuses what it cannot know. Decoding is total: any bytes give a sound
//! cell or a named error, since files rot and rows can be edited by hand. Must not panic, nor
//! allocate more than the bytes at hand can justify.

mod acts;
mod counters;
#[cfg(test)]
mod tests;
mod wire;

use crate::cell::Cell;

use wire::{Reader, Writer};

/// What a cell is, as a number beside its bytes.
///
/// The numbers are part of every snapshot: they may be added to, never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A token bucket.
    Bucket = 1,
    /// The units of sliding windows, and strikes.
    Log = 2,
    /// A fixed window.
    Fixed = 3,
    /// Leases in flight.
    Leases = 4,
    /// A block.
    Block = 5,
    /// A watched ratio.
    Watch = 6,
    /// A settled-marker.
    Mark = 7,
    /// A remembered reference.
    Reference = 8,
}

impl Kind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Bucket,
        Self::Log,
        Self::Fixed,
        Self::Leases,
        Self::Block,
        Self::Watch,
        Self::Mark,
        Self::Reference,
    ];

    /// The kind of a number, if it is one.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// A cell that can be written as bytes and read back.
pub trait Codec: Cell + Fields {
    /// What it is.
    const KIND: Kind;

    /// Appends the cell's bytes.
    fn encode(&self, into: &mut Vec<u8>) {
        into.push(VERSION);
        self.write(&mut Writer::new(into));
    }

    /// Reads a cell from exactly these bytes.
    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut reader = Reader::new(bytes)?;
        if !(1..=VERSION).contains(&reader.version) {
            return Err(CodecError::Version { found: reader.version, known: VERSION });
        }
        let cell = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(cell)
    }
}

/// Why bytes are not a cell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// Written by another version of the program.
    #[error("version {found} of the encoding is not known here, which reads version {known}")]
    Version {
        /// The version of the bytes.
        found: u8,
        /// The version that is read here.
        known: u8,
    },
    /// The bytes end inside a field.
    #[error("the bytes end too early")]
    Short,
    /// There are bytes after the last field.
    #[error("{extra} bytes too many")]
    Trailing {
        /// How many.
        extra: usize,
    },
    /// A number takes more bytes than it needs, or more than any number has.
    #[error("a number is written in too many bytes")]
    Overlong,
    /// A number that the field cannot have.
    #[error("`{field}` is out of range")]
    Range {
        /// The field.
        field: &'static str,
    },
    /// Entries that must be in order are not.
    #[error("`{field}` is out of order")]
    Order {
        /// The field.
        field: &'static str,
    },
    /// A text that is not UTF-8.
    #[error("`{field}` is not UTF-8")]
    Text {
        /// The field.
        field: &'static str,
    },
    /// Flags that have no meaning.
    #[error("`{field}` has flags without a meaning: {found:#04x}")]
    Flags {
        /// The field.
        field: &'static str,
        /// The flags.
        found: u8,
    },
}

/// The fields of a cell, one after the other. Sealed: only cells of this crate have them.
pub trait Fields: Sized {
    /// Writes every field.
    #[doc(hidden)]
    fn write(&self, to: &mut Writer<'_>);
    /// Reads every field.
    #[doc(hidden)]
    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError>;
}

/// The version that is written. A change of any field below is a new version, and `decode` then
/// still reads the old ones. Since the second, a reference knows its owner.
const VERSION: u8 = 2;
