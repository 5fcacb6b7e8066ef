//! Admin API: the routes of operators' requests, and what their handlers share.
//!
//! A handler parses a request, calls one method of the application, and renders the answer. Audit,
//! durability and the other nodes are the application's.

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

use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::routing::{get, post, put};
use catraca::Time;
use catraca::app::TEXT_MAX;
use catraca::records::Operator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use super::request::{
    ApiRequest, CallerExt, ConnectionExt, ContextState, PathParams, ResponseFuture,
};
use crate::context::ServerContext;
use crate::http::bodies::problem::{Problem, json_response};

/// The body of a response, or the problem to send instead.
type AdminResult = Result<Vec<u8>, Problem>;
type AdminFuture<'a> = Pin<Box<dyn Future<Output = AdminResult> + Send + 'a>>;
/// Handles one admin request.
type AdminHandler = for<'a> fn(&'a ApiRequest) -> AdminFuture<'a>;

/// Every route of the admin API.
pub fn routes() -> Router<Arc<ServerContext>> {
    let blocklist = get(handle(|request| Box::pin(lists::list_blocklist(request))))
        .post(handle(|request| Box::pin(lists::add_to_blocklist(request))))
        .delete(handle(|request| Box::pin(lists::remove_from_blocklist(request))));
    let allowlist = get(handle(|request| Box::pin(lists::list_allowlist(request))))
        .post(handle(|request| Box::pin(lists::add_to_allowlist(request))))
        .delete(handle(|request| Box::pin(lists::remove_from_allowlist(request))));
    let facts = get(handle(|request| Box::pin(facts::show(request))))
        .put(handle(|request| Box::pin(facts::set(request))))
        .delete(handle(|request| Box::pin(facts::delete(request))));
    let blocks = get(handle(|request| Box::pin(blocks::list(request))))
        .post(handle(|request| Box::pin(blocks::create(request))));
    let block = get(handle(|request| Box::pin(blocks::show(request))))
        .delete(handle(|request| Box::pin(blocks::release(request))));
    let set_mode = put(handle(|request| Box::pin(policies::set_mode(request))));
    let reconcile = post(handle(|request| Box::pin(reset::reconcile(request))));
    let top_blocked = get(handle(|request| Box::pin(stats::top_blocked(request))));
    Router::new()
        .route("/v1/blocks", blocks)
        .route("/v1/blocks/{id}", block)
        .route("/v1/blocklist", blocklist)
        .route("/v1/allowlist", allowlist)
        .route("/v1/facts", get(handle(|request| Box::pin(facts::list(request)))))
        .route("/v1/facts/{attribute}/{value}", facts)
        .route("/v1/policies", get(handle(|request| Box::pin(policies::list(request)))))
        .route("/v1/policies/{name}", get(handle(|request| Box::pin(policies::show(request)))))
        .route("/v1/policies/{name}/mode", set_mode)
        .route("/v1/config", get(handle(|request| Box::pin(config::show(request)))))
        .route("/v1/config/reload", post(handle(|request| Box::pin(reload::reload(request)))))
        .route("/v1/reset", post(handle(|request| Box::pin(reset::reset(request)))))
        .route("/v1/buckets/reconcile", reconcile)
        .route("/v1/whoami", get(handle(|request| Box::pin(whoami::whoami(request)))))
        .route("/v1/stats", get(handle(|request| Box::pin(stats::by_policy(request)))))
        .route("/v1/stats/top-blocked", top_blocked)
        .route("/v1/stats/actions", get(handle(|request| Box::pin(stats::by_action(request)))))
        .route("/v1/audit", get(handle(|request| Box::pin(audit::list(request)))))
        .route("/v1/privacy/export", post(handle(|request| Box::pin(privacy::export(request)))))
        .route("/v1/privacy/erase", post(handle(|request| Box::pin(privacy::erase(request)))))
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
                Ok(request) => handler(&request).await,
                Err(problem) => Err(problem),
            };
            result.map_or_else(|problem| problem.to_response(), json_response).map(Body::new)
        })
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

/// Serialises the body of a response. Through a value, which sorts the fields by name.
fn to_json<T: Serialize>(body: &T) -> AdminResult {
    let value = serde_json::to_value(body).map_err(|error| Problem::internal(&error))?;
    super::credit_and_buckets::encode(&value)
}

impl ApiRequest {
    /// The operator, by the name of the key, and the reason given.
    pub fn operator<'a>(&'a self, why: Option<&'a str>) -> Operator<'a> {
        Operator { name: self.caller.name(), why }
    }

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
