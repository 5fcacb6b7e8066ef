//! `GET /v1/audit`: pages of the audit log, one row per act of an operator.

use catraca::records::{AuditQuery, Incomplete};
use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiRequest, ApiResult, parse_limit, parse_number, records_scope, to_json};
use crate::http::bodies::record_bodies;

/// A page of operators' acts, newest first.
#[derive(Serialize, JsonSchema)]
pub struct AuditPage {
    acts: Vec<record_bodies::AuditEntry>,
    /// The `after` of the next page; null on the last.
    next: Option<String>,
    /// Why the newest entries may be missing; absent if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<&'static str>,
    /// `node` if each node has records of its own: these are those of the node that answered.
    /// Absent if all nodes share them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"node")]
    scope: Option<&'static str>,
}

/// `GET /v1/audit`.
pub async fn list(request: &ApiRequest) -> ApiResult {
    let names = ["by", "act", "namespace", "after", "limit"];
    let [by, act, namespace, after, limit] = request.query_params(names)?;
    let defaults = AuditQuery::default();
    if let Some(act) = act {
        request.app().check_act_filter(act).await?;
    }
    let query = AuditQuery {
        by: by.map(str::to_owned),
        act: act.map(str::to_owned),
        namespace: request.entry_namespace(namespace).await?,
        before: parse_number("after", after)?,
        limit: parse_limit(limit, defaults.limit)?,
    };
    let page = request.app().audit(query).await?;
    let acts = page.rows.iter().map(record_bodies::AuditEntry::from).collect();
    let next = page.next.map(|next| next.to_string());
    let incomplete = page.incomplete.map(Incomplete::as_str);
    to_json(&AuditPage { acts, next, incomplete, scope: records_scope(request) })
}
