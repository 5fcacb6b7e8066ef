//! The catalog's files, read again at once.
//!
//! Must not put anything in force that could not have been started with: a wrong one is answered
//! with all of its mistakes, and the old one stays.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::{Answered, Call, Desk, Problem, bounded};
use crate::reload::Wish;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    why: Option<String>,
}

/// `POST /v1/config/reload`.
pub fn reload(desk: &Desk<'_>, call: &Call) -> Answered {
    let [] = call.asked([])?;
    let wire: Wire = if call.body.is_empty() { Wire::default() } else { call.wire()? };
    let why = bounded("why", wire.why.as_deref())?;
    let reloader = &desk.front.reloader;
    if !reloader.has_file() {
        let detail = "the built-in demo has no file; start with `catraca serve --config FILE`";
        return Err(Problem::new(StatusCode::CONFLICT, "no-catalog-file", detail));
    }
    match reloader.now(Wish::Operator(desk.by.name(), why)) {
        Ok(done) => Ok(json!({
            "before": done.before,
            "revision": done.revision,
            "changes": done.changes,
            "after_restart": done.after_restart,
            "durable": done.durable,
        })),
        Err(trouble) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Err(Problem::new(status, "bad-catalog", trouble.why.clone()))
        }
    }
}
