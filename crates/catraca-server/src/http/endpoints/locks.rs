//! Locks and slots over HTTP: their routes, and what their handlers share.
//!
//! `lease` and `slot` hold the handlers for clients, `lease_admin` those for operators. A conflict
//! is a 409 with the holder in its body, not a problem+json; errors are.

pub mod lease;
pub mod lease_admin;
mod lock_log;
pub mod slot;

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::routing::{delete, get, post};
use catraca::core::lock::LockRefusal;
use catraca::core::lock::reply::Lease;
use catraca::core::lock::requests::Proof;
use catraca::core::lock::{LeaseId, LockTerms};
use catraca::{LockError, Locks};
use serde::Serialize;
use tracing::{Level, enabled};

use super::request::{
    ApiRequest, CallerExt, ConnectionExt, ContextState, PathParams, ResponseFuture,
};
use super::selftest;
use crate::context::ServerContext;
use crate::http::bodies::lock_responses::epoch_millis;
use crate::http::bodies::problem::{FullResponse, Problem, json_response};

/// The response, or the problem to send instead.
pub type LockApiResult = Result<FullResponse, Problem>;
type LockApiFuture<'a> = Pin<Box<dyn Future<Output = LockApiResult> + Send + 'a>>;
/// Handles one request.
type LockApiHandler = for<'a> fn(&'a ApiRequest) -> LockApiFuture<'a>;

/// Every route of the lock API.
pub fn routes() -> Router<Arc<ServerContext>> {
    Router::new()
        .route("/v1/locks/acquire", post(handle(|request| Box::pin(lease::acquire(request)))))
        .route("/v1/locks/renew", post(handle(|request| Box::pin(lease::renew(request)))))
        .route("/v1/locks/release", post(handle(|request| Box::pin(lease::release(request)))))
        .route(
            "/v1/locks",
            get(handle(|request| Box::pin(lease_admin::list(request))))
                .delete(handle(|request| Box::pin(lease_admin::clear(request)))),
        )
        .route("/v1/locks/{fence}", delete(handle(|request| Box::pin(lease_admin::force(request)))))
        .route("/v1/slots/hold", post(handle(|request| Box::pin(slot::hold(request)))))
        .route("/v1/slots/confirm", post(handle(|request| Box::pin(slot::confirm(request)))))
        .route("/v1/slots/cancel", post(handle(|request| Box::pin(slot::cancel(request)))))
        .route("/v1/slots/move", post(handle(|request| Box::pin(slot::move_slot(request)))))
        .route("/v1/slots", get(handle(|request| Box::pin(slot::show_calendar(request)))))
        .route("/v1/stats/locks", get(handle(|request| Box::pin(lease_admin::stats(request)))))
        .route(
            "/v1/selftest",
            get(handle(|request| Box::pin(selftest::report(request))))
                .post(handle(|request| Box::pin(selftest::run(request)))),
        )
}

/// Makes an axum handler that reads the request, runs `handler` and sends its response.
fn handle(
    handler: LockApiHandler,
) -> impl Fn(ContextState, ConnectionExt, CallerExt, PathParams, Request) -> ResponseFuture
+ Clone
+ Send
+ Sync
+ 'static {
    move |context, connection, caller, path, request| {
        Box::pin(async move {
            let request = ApiRequest::read(context, connection, caller, path, request).await;
            let response = match request {
                Ok(request) => request.respond(handler).await,
                Err(problem) => problem.to_response(),
            };
            response.map(Body::new)
        })
    }
}

impl ApiRequest {
    /// Runs the handler, and logs the call at the level `debug`.
    async fn respond(&self, handler: LockApiHandler) -> FullResponse {
        let response = handler(self).await.unwrap_or_else(|problem| problem_response(&problem));
        if enabled!(Level::DEBUG) {
            let namespace = self.namespace();
            lock_log::log_lock_call(&self.context, namespace, &self.route, &self.body, &response);
        }
        response
    }

    pub fn locks(&self) -> &Arc<Locks> {
        self.context.app.locks()
    }

    fn terms(&self) -> LockTerms {
        self.context.app.catalog().locks.clone()
    }

    pub fn namespace(&self) -> &str {
        self.caller.namespace()
    }

    /// The proof of holding a lease, from the `lease_id` of a body and the tenant of the key.
    fn proof(&self, lease_id: &str) -> Result<Proof, Problem> {
        let tenant = self.caller.allowed_tenant(None)?.map(Into::into);
        let detail = "`lease_id` is malformed: send the 32 characters of the grant's `lease_id`";
        let id = LeaseId::parse(lease_id).ok_or_else(|| Problem::bad("bad-lock", detail))?;
        Ok(Proof { key: id.key(), tenant })
    }

    /// Writes an operator's act to the audit; returns whether it is on disk.
    pub async fn write_audit(
        &self,
        act: &str,
        target: String,
        why: Option<&str>,
    ) -> Result<bool, Problem> {
        Ok(self.context.app.audit_note(&self.operator(why), act, target).await?)
    }
}

/// A 200 with this body.
pub fn respond_json<T: Serialize>(body: &T) -> LockApiResult {
    super::credit_and_buckets::encode(body).map(json_response)
}

/// A response with this status and body.
fn respond_json_with_status<T: Serialize>(status: StatusCode, body: &T) -> LockApiResult {
    let mut response = respond_json(body)?;
    *response.status_mut() = status;
    Ok(response)
}

/// Adds the `X-Lock-*` headers of a lease.
fn with_lease_headers(mut response: FullResponse, lease: &Lease) -> FullResponse {
    let mut add = |name: &'static str, number: i64| {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from(number));
    };
    add("x-lock-version", lease.version);
    add("x-lock-fence", lease.fence);
    if !lease.expires_at.is_forever() {
        add("x-lock-expires", epoch_millis(lease.expires_at));
    }
    response
}

/// The response of a problem; for an unavailable lock store, with `Retry-After`.
fn problem_response(problem: &Problem) -> FullResponse {
    match problem.code {
        "lock-store-unavailable" => retry_after(problem.to_response(), UNAVAILABLE_RETRY_SECS),
        _ => problem.to_response(),
    }
}

fn retry_after(mut response: FullResponse, seconds: i64) -> FullResponse {
    // `Retry-After: 0` would ask for a retry at once.
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    response
}

/// `Retry-After` while the lock store is unavailable.
const UNAVAILABLE_RETRY_SECS: i64 = 1;

/// The response of an error; while the server is starting, with the remaining wait as
/// `Retry-After`.
fn lock_error_response(error: LockError) -> LockApiResult {
    let LockError::Starting { wait } = &error else { return Err(error.into()) };
    let seconds = wait.ceil_secs();
    Ok(retry_after(Problem::from(error).to_response(), seconds))
}

impl From<LockRefusal> for Problem {
    fn from(refusal: LockRefusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            LockRefusal::RequestIdReused => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "request-id-reused", detail)
            }
            LockRefusal::RequestExpired => Self::new(StatusCode::GONE, "request-expired", detail),
            LockRefusal::Full { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "locks-full", detail)
            }
            _ => Self::bad("bad-lock", detail),
        }
    }
}

impl From<LockError> for Problem {
    fn from(error: LockError) -> Self {
        let detail = error.to_string();
        match error {
            LockError::Refused(refusal) => refusal.into(),
            LockError::Starting { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "locks-starting", detail)
            }
            LockError::StoreUnavailable { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "lock-store-unavailable", detail)
            }
            LockError::TooManyWaiters => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "too-many-waiters", detail)
            }
            LockError::WriteFailed { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "lock-write-failed", detail)
            }
            _ => Self::new(StatusCode::SERVICE_UNAVAILABLE, "locks-stopping", detail),
        }
    }
}
