//! `catraca openapi`: the description of the HTTP API, as a server gives it at `/openapi.json`.
//!
//! Must print that and nothing else: programs read it.

use std::io::{Write, stdout};

use anyhow::Result;

use crate::exit::Exit;
use crate::http;

/// Prints the document.
pub fn run() -> Result<Exit> {
    stdout().lock().write_all(http::openapi().as_bytes())?;
    Ok(Exit::Yes)
}
