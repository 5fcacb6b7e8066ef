//! The audit: every operator's act, with who, why, before and after.

use catraca::records::AuditQuery;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::shown;
use super::{Answered, Call, Desk, number, told};

/// A page of operators' acts, the latest first.
#[derive(Serialize, JsonSchema)]
pub struct AuditPage {
    acts: Vec<shown::Audited>,
    /// The `after` of the next page; null on the last.
    next: Option<String>,
}

/// `GET /v1/audit`.
pub fn audit(desk: &Desk<'_>, call: &Call) -> Answered {
    let [by, act, after, limit] = call.asked(["by", "act", "after", "limit"])?;
    let usual = AuditQuery::default();
    let query = AuditQuery {
        by: by.map(str::to_owned),
        act: act.map(str::to_owned),
        before: number("after", after)?,
        limit: number("limit", limit)?.unwrap_or(usual.limit),
    };
    let page = desk.records()?.audit(&query)?;
    let acts = page.rows.iter().map(shown::Audited::from).collect();
    told(&AuditPage { acts, next: page.next.map(|next| next.to_string()) })
}
