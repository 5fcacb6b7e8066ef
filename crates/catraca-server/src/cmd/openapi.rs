//! `catraca openapi`: prints the document that a server serves at `/openapi.json`.

use std::io::{Write, stdout};

use anyhow::Result;

use crate::exit::Exit;
use crate::http::openapi;

/// Prints the document.
pub fn run() -> Result<Exit> {
    stdout().lock().write_all(openapi::document_text().as_bytes())?;
    Ok(Exit::Yes)
}
