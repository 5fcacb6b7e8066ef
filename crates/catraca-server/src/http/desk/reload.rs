//! The catalog's files, read again at once.
//!
//! Must not put anything in force that could not have been started with: a wrong one is answered
//! with all of its mistakes, and the old one stays.

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::words;
use super::{Answered, Call, Desk, Problem, bounded, told};
use crate::reload::Wish;

/// Another catalog in force, or the same.
#[derive(Serialize, JsonSchema)]
pub struct NewCatalog {
    /// The revision that was in force.
    #[schemars(example = &words::REVISION)]
    before: String,
    /// The revision that is now.
    #[schemars(example = &words::REVISION)]
    revision: String,
    /// What differs, in words.
    changes: Vec<String>,
    /// Settings that differ from the start's and wait for the next one.
    after_restart: Vec<String>,
    /// Whether it is on disk.
    durable: bool,
}

/// `POST /v1/config/reload`.
pub fn reload(desk: &Desk<'_>, call: &Call) -> Answered {
    let [] = call.asked([])?;
    let motive = call.motive()?;
    let why = bounded("why", motive.why.as_deref())?;
    let reloader = &desk.front.reloader;
    if !reloader.has_file() {
        let detail = "the built-in demo has no file; start with `catraca serve --config FILE`";
        return Err(Problem::new(StatusCode::CONFLICT, "no-catalog-file", detail));
    }
    match reloader.now(Wish::Operator(desk.by.name(), why)) {
        Ok(done) => told(&NewCatalog {
            before: done.before,
            revision: done.revision,
            changes: done.changes,
            after_restart: done.after_restart,
            durable: done.durable,
        }),
        Err(trouble) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Err(Problem::new(status, "bad-catalog", trouble.why.clone()))
        }
    }
}
