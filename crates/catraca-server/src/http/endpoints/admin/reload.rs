//! `POST /v1/config/reload`: reads the catalog's files again.
//!
//! An invalid catalog is refused with all of its errors, and the old one stays in use.

use hyper::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiRequest, ApiResult, Problem, to_json};
use crate::http::bodies::schema_values;

/// The result of a reload; the catalog may be unchanged.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReloadResult")]
pub struct ReloadBody {
    /// The revision before.
    #[schemars(example = &schema_values::REVISION)]
    before: String,
    /// The revision in use now.
    #[schemars(example = &schema_values::REVISION)]
    revision: String,
    /// A description of every change.
    changes: Vec<String>,
    /// Settings that changed since the server started, and take effect at its next start.
    after_restart: Vec<String>,
    /// Whether it is on disk.
    durable: bool,
}

/// `POST /v1/config/reload`.
pub async fn reload(request: &ApiRequest) -> ApiResult {
    let [] = request.query_params([])?;
    let reason = request.audit_reason()?;
    let reloader = &request.context().reloader;
    if !reloader.has_file() {
        let detail = "the built-in demo has no file; start with `catraca serve -c FILE`";
        return Err(Problem::new(StatusCode::CONFLICT, "no-catalog-file", detail));
    }
    let by = request.caller.name().to_owned();
    let done = reloader.reload_by_operator(by, reason.why).await?;
    match done {
        Ok(done) => to_json(&ReloadBody {
            before: done.before,
            revision: done.revision,
            changes: done.changes,
            after_restart: done.after_restart,
            durable: done.durable,
        }),
        Err(error) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Err(Problem::new(status, "bad-catalog", error.why.clone()))
        }
    }
}
