//! Admin API: handlers of operators' requests, and what they share.
//!
//! A handler parses a request, calls one method of the application, and renders the answer. Audit,
//! durability and the other nodes are the application's.

pub mod audit;
pub mod blocks;
pub mod config;
pub mod facts;
pub mod inspect;
pub mod lists;
pub mod namespaces;
pub mod policies;
pub mod privacy;
pub mod reload;
pub mod reset;
pub mod stats;
pub mod whoami;

use std::str::FromStr;

use catraca::Time;
use catraca::app::{TEXT_MAX, check_page_size};
use catraca::records::PAGE_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::bodies::problem::{Problem, respond_json};
use crate::http::endpoint::ApiResult;
use crate::http::request::ApiRequest;

/// Why an operator acts.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditReason {
    /// For the audit.
    #[schemars(length(max = TEXT_MAX), example = &"the caller was wronged")]
    why: Option<String>,
}

/// Serialises the body of a response. Through a value, which sorts the fields by name.
fn to_json<T: Serialize>(body: &T) -> ApiResult {
    let value = serde_json::to_value(body).map_err(|error| Problem::internal(&error))?;
    respond_json(&value)
}

/// The `scope` of answers from the records: `node` if other nodes have others.
fn records_scope(request: &ApiRequest) -> Option<&'static str> {
    request.app().has_own_records().then_some("node")
}

impl ApiRequest {
    /// The reason in the body; an empty body gives none.
    fn audit_reason(&self) -> Result<AuditReason, Problem> {
        if self.body.is_empty() { Ok(AuditReason::default()) } else { self.json_body() }
    }
}

/// Parses a whole number of the query.
fn parse_number<T: FromStr>(name: &str, text: Option<&str>) -> Result<Option<T>, Problem> {
    let invalid = || Problem::bad("bad-query", format!("`{name}` must be a whole number"));
    text.map(|text| text.parse().map_err(|_| invalid())).transpose()
}

/// The number of rows that a query asks for.
pub fn parse_limit(text: Option<&str>, default: u32) -> Result<u32, Problem> {
    let limit = match text {
        None => default,
        Some(text) => text.parse().map_err(|_| {
            let detail = format!("`limit` must be a whole number from 1 to {PAGE_MAX}");
            Problem::bad("bad-query", detail)
        })?,
    };
    Ok(check_page_size(limit)?)
}

/// Parses an RFC 3339 instant of the query or of a body.
pub fn parse_instant(name: &str, text: Option<&str>) -> Result<Option<Time>, Problem> {
    let invalid = || {
        let detail = format!("`{name}` must be an instant such as 2026-01-31T12:00:00Z");
        Problem::bad("bad-instant", detail)
    };
    text.map(|text| Time::parse_rfc3339(text).map_err(|_| invalid())).transpose()
}
