//! `catraca openapi`: prints the document that a server serves at `/openapi.json`.

use std::io::{Write, stdout};

use anyhow::Result;

use crate::exit::Exit;
use crate::http;

/// Prints the document.
pub fn run() -> Result<Exit> {
    stdout().lock().write_all(http::openapi().as_bytes())?;
    Ok(Exit::Yes)
}
