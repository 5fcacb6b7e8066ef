//! Encodes cells as bytes, for snapshots of the memory store and for rows of PostgreSQL.
//!
//! Every encoding begins with its version, so that a later program can read what an earlier one
//! wrote, and an earlier program refuses what it does not know. Files can be damaged and table rows
//! can be edited by hand, so decoding accepts any input: it returns a valid cell or an error, never
//! panics, and never allocates more than the input can justify.

mod blocks_and_references;
#[cfg(test)]
mod tests;
pub(crate) mod wire;

use std::fmt;

use crate::cell::{Cell, CellKind};

use wire::{Reader, Writer};

/// A cell that can be encoded as bytes.
pub trait Codec: Cell + Fields {
    /// The kind of the cell.
    const KIND: CellKind;

    /// Appends the encoding of the cell.
    fn encode(&self, into: &mut Vec<u8>) {
        into.push(VERSION);
        self.write(&mut Writer::new(into));
    }

    /// Decodes a cell from exactly these bytes.
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

/// Why bytes cannot be decoded as a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodecError {
    /// The version is unknown, probably because a later program wrote the bytes.
    Version {
        /// The version in the bytes.
        found: u8,
        /// The latest version that this program reads.
        known: u8,
    },
    /// The bytes end inside a field.
    Short,
    /// There are bytes after the last field.
    Trailing {
        /// How many.
        extra: usize,
    },
    /// A number has more bytes than it needs, or than any number can have.
    Overlong,
    /// A number outside the range of the field.
    Range {
        /// The field.
        field: &'static str,
    },
    /// Entries are not sorted.
    Order {
        /// The field.
        field: &'static str,
    },
    /// A text is not UTF-8.
    Text {
        /// The field.
        field: &'static str,
    },
    /// Unknown flag bits are set.
    Flags {
        /// The field.
        field: &'static str,
        /// The flags.
        found: u8,
    },
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { found, known } => write!(
                f,
                "encoding version {found} is unknown; this program reads versions up to {known}"
            ),
            Self::Short => f.write_str("the data ends inside a field"),
            Self::Trailing { extra } => write!(f, "{extra} bytes after the last field"),
            Self::Overlong => f.write_str("a number has more bytes than it needs"),
            Self::Range { field } => write!(f, "`{field}` is out of range"),
            Self::Order { field } => write!(f, "`{field}` is out of order"),
            Self::Text { field } => write!(f, "`{field}` is not UTF-8"),
            Self::Flags { field, found } => write!(f, "`{field}` has unknown flags: {found:#04x}"),
        }
    }
}

impl std::error::Error for CodecError {}

/// The fields of a cell, in order. Sealed: only cells of this crate implement it.
pub trait Fields: Sized {
    /// Writes every field.
    #[doc(hidden)]
    fn write(&self, to: &mut Writer<'_>);
    /// Reads every field.
    #[doc(hidden)]
    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError>;
}

/// The version that is written. Any change of a field below needs a new version, and `decode` must
/// still read the old ones. Version 2 added the owner of a reference.
const VERSION: u8 = 2;
