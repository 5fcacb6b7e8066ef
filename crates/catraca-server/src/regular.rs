//! Files that a start reads: regular ones, or links to them.
//!
//! A pipe would keep the start waiting for somebody to write, and could not be read again for a
//! reload. Must not open anything else.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// The text of a file.
pub fn read(file: &Path) -> Result<String> {
    ensure(file)?;
    fs::read_to_string(file)
}

/// Refuses what is there and is no regular file.
pub fn ensure(file: &Path) -> Result<()> {
    if fs::metadata(file)?.is_file() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
}
