//! Reads configuration files, and refuses everything but regular files and links to them.
//!
//! Opening a named pipe would block the start until another process writes to it, and a reload
//! could not read it a second time.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Reads a regular file as text.
pub fn read(file: &Path) -> Result<String> {
    ensure(file)?;
    fs::read_to_string(file)
}

/// Returns an error if the path is not a regular file, or cannot be inspected.
pub fn ensure(file: &Path) -> Result<()> {
    if fs::metadata(file)?.is_file() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
}
