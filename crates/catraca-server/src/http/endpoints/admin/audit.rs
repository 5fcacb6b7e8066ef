//! `GET /v1/audit`: pages of the audit log, one row per act of an operator.

use catraca::records::AuditQuery;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiRequest, ApiResult, parse_number, to_json};
use crate::http::bodies::record_bodies;

/// A page of operators' acts, newest first.
#[derive(Serialize, JsonSchema)]
pub struct AuditPage {
    acts: Vec<record_bodies::AuditEntry>,
    /// The `after` of the next page; null on the last.
    next: Option<String>,
}

/// `GET /v1/audit`.
pub async fn list(request: &ApiRequest) -> ApiResult {
    let [by, act, after, limit] = request.query_params(["by", "act", "after", "limit"])?;
    let defaults = AuditQuery::default();
    let query = AuditQuery {
        by: by.map(str::to_owned),
        act: act.map(str::to_owned),
        before: parse_number("after", after)?,
        limit: parse_number("limit", limit)?.unwrap_or(defaults.limit),
    };
    let page = request.app().audit(query).await?;
    let acts = page.rows.iter().map(record_bodies::AuditEntry::from).collect();
    to_json(&AuditPage { acts, next: page.next.map(|next| next.to_string()) })
}
