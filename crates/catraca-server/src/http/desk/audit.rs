//! The audit: every operator's act, with who, why, before and after.

use catraca::records::AuditQuery;
use serde_json::{Value, json};

use super::super::shown;
use super::{Answered, Call, Desk, number};

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
    let acts: Vec<Value> = page.rows.iter().map(shown::audited).collect();
    Ok(json!({ "acts": acts, "next": page.next.map(|next| next.to_string()) }))
}
