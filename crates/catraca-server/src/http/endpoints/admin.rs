//! Admin API: the routes of operators' requests, and what their handlers share.
//!
//! A request is read here, on the async runtime. Its handler, a plain function in one of the
//! submodules, runs on a blocking thread, because it reads and writes records on disk.

pub mod audit;
pub mod blocks;
pub mod config;
pub mod facts;
pub mod lists;
pub mod policies;
pub mod privacy;
pub mod reload;
pub mod reset;
pub mod stats;
pub mod whoami;

use std::str::FromStr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use catraca::core::request::validate_storable;
use catraca::records::{Receipt, Record, RecordKind, Records, RecordsError};
use catraca::{Engine, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::events;
use super::request::{
    ApiRequest, CallerExt, ConnectionExt, ContextState, PathParams, ResponseFuture,
};
use crate::auth::Caller;
use crate::context::ServerContext;
use crate::http::bodies::problem::{Problem, json_response};

/// Maximum length of `why` and `reason`, in bytes.
const TEXT_MAX: usize = 500;

/// The body of a response, or the problem to send instead.
type AdminResult = Result<Value, Problem>;
/// Handles one admin request; runs on a blocking thread.
type AdminHandler = fn(&AdminContext<'_>, &ApiRequest) -> AdminResult;

/// What a handler works with.
pub struct AdminContext<'a> {
    app: &'a ServerContext,
    engine: &'a Engine,
    caller: &'a Caller,
}

/// Every route of the admin API.
pub fn routes() -> Router<Arc<ServerContext>> {
    let blocklist = get(handle(lists::list_blocklist))
        .post(handle(lists::add_to_blocklist))
        .delete(handle(lists::remove_from_blocklist));
    let allowlist = get(handle(lists::list_allowlist))
        .post(handle(lists::add_to_allowlist))
        .delete(handle(lists::remove_from_allowlist));
    let facts = get(handle(facts::show)).put(handle(facts::set)).delete(handle(facts::delete));
    Router::new()
        .route("/v1/blocks", get(handle(blocks::list)).post(handle(blocks::create)))
        .route("/v1/blocks/{id}", get(handle(blocks::show)).delete(handle(blocks::release)))
        .route("/v1/blocklist", blocklist)
        .route("/v1/allowlist", allowlist)
        .route("/v1/facts", get(handle(facts::list)))
        .route("/v1/facts/{attribute}/{value}", facts)
        .route("/v1/policies", get(handle(policies::list)))
        .route("/v1/policies/{name}", get(handle(policies::show)))
        .route("/v1/policies/{name}/mode", put(handle(policies::set_mode)))
        .route("/v1/config", get(handle(config::show)))
        .route("/v1/config/reload", post(handle(reload::reload)))
        .route("/v1/reset", post(handle(reset::reset)))
        .route("/v1/buckets/reconcile", post(handle(reset::reconcile)))
        .route("/v1/whoami", get(handle(whoami::whoami)))
        .route("/v1/stats", get(handle(stats::by_policy)))
        .route("/v1/stats/top-blocked", get(handle(stats::top_blocked)))
        .route("/v1/stats/actions", get(handle(stats::by_action)))
        .route("/v1/audit", get(handle(audit::list)))
        .route("/v1/privacy/export", post(handle(privacy::export)))
        .route("/v1/privacy/erase", post(handle(privacy::erase)))
        .route("/v1/events", get(events::events))
}

/// Makes an axum handler that reads the request, runs `handler` and encodes its result.
fn handle(
    handler: AdminHandler,
) -> impl Fn(ContextState, ConnectionExt, CallerExt, PathParams, Request) -> ResponseFuture
+ Clone
+ Send
+ Sync
+ 'static {
    move |context, connection, caller, path, request| {
        Box::pin(async move {
            let request = ApiRequest::read(context, connection, caller, path, request).await;
            let result = match request {
                Ok(request) => run_blocking(request, handler).await,
                Err(problem) => Err(problem),
            };
            let encoded = result.and_then(|value| super::credit_and_buckets::encode(&value));
            encoded.map_or_else(|problem| problem.to_response(), json_response).map(Body::new)
        })
    }
}

/// Runs a handler on a blocking thread: it waits for reads and writes of records.
async fn run_blocking(request: ApiRequest, handler: AdminHandler) -> AdminResult {
    let work = move || {
        let app = &*request.context;
        let context = AdminContext { app, engine: &app.engine, caller: &request.caller };
        handler(&context, &request)
    };
    let joined = tokio::task::spawn_blocking(work).await;
    joined.unwrap_or_else(|error| Err(Problem::internal(&error)))
}

impl AdminContext<'_> {
    /// The records, or 409 `no-records` if this server has none.
    fn records(&self) -> Result<&Records, Problem> {
        let detail = "this server has no records: start it with --catalog FILE, and without \
                      `[records] url = \"none\"`";
        let no_records = || Problem::new(StatusCode::CONFLICT, "no-records", detail);
        self.app.records.as_deref().ok_or_else(no_records)
    }

    /// Runs `act` on the engine and waits until it is recorded and audited; returns its result and
    /// whether the record is on disk.
    fn run_audited<R>(
        &self,
        why: Option<&str>,
        act: impl FnOnce() -> Result<R, catraca::Error>,
    ) -> Result<(R, bool), Problem> {
        let operator = Some(self.caller.name());
        let (result, receipt) = self.records()?.run_recorded(operator, why, act);
        Ok((result?, wait_durable(receipt)))
    }

    /// Records and audits what was done; returns whether the record is on disk.
    fn record_acts(&self, why: Option<&str>, acts: Vec<RecordKind>) -> Result<bool, Problem> {
        let at = self.engine.now();
        let operator = self.caller.name();
        let records = acts.into_iter().map(|act| Record::operator(at, operator, why, act));
        self.write_records(records.collect())
    }

    /// Writes records and notifies other nodes, which then read them; returns whether the records
    /// are on disk.
    fn write_records(&self, records: Vec<Record>) -> Result<bool, Problem> {
        let durable = wait_durable(self.records()?.record(records));
        self.app.publish_change();
        Ok(durable)
    }
}

/// Why an operator acts.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditReason {
    /// For the audit.
    #[schemars(length(max = TEXT_MAX), example = &"the caller was wronged")]
    why: Option<String>,
}

/// Serialises the body of a response.
fn to_json<T: Serialize>(body: &T) -> AdminResult {
    serde_json::to_value(body).map_err(|error| Problem::internal(&error))
}

/// Waits for the write; false if the disk failed, and the records retry it in the background.
fn wait_durable(receipt: Receipt) -> bool {
    receipt.wait().is_durable()
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

/// Parses an RFC 3339 instant of the query or of a body.
fn parse_instant(name: &str, text: Option<&str>) -> Result<Option<Time>, Problem> {
    let invalid = || {
        let detail = format!("`{name}` must be an instant such as 2026-01-31T12:00:00Z");
        Problem::bad("bad-instant", detail)
    };
    text.map(|text| Time::parse_rfc3339(text).map_err(|_| invalid())).transpose()
}

/// Checks the length and the characters of a free text; an empty text counts as none.
fn check_text<'t>(name: &str, text: Option<&'t str>) -> Result<Option<&'t str>, Problem> {
    match text {
        Some(text) if text.len() > TEXT_MAX => {
            let detail = format!("`{name}` may have {TEXT_MAX} bytes and has {}", text.len());
            Err(Problem::bad("text-too-long", detail))
        }
        Some(text) => {
            validate_storable(format_args!("`{name}`"), text)?;
            Ok(Some(text).filter(|text| !text.is_empty()))
        }
        None => Ok(None),
    }
}

/// A 404.
fn not_found(code: &'static str, detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, code, detail)
}

impl From<RecordsError> for Problem {
    fn from(error: RecordsError) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "records-failed", error.to_string())
    }
}
