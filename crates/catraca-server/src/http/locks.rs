//! Locks and slots over HTTP: their routes, and what their handlers share.
//!
//! `lease` and `slot` hold the handlers for clients, `lease_admin` those for operators, and
//! `selftest` a test of the server in a namespace of its own. `request_bodies` and
//! `response_bodies` hold the JSON. A conflict is a 409 with the holder in its body, not a
//! problem+json; errors are.

pub mod lease;
pub mod lease_admin;
pub mod request_bodies;
pub mod response_bodies;
pub mod selftest;
pub mod slot;

use std::pin::Pin;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, RawPathParams, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::routing::{delete, get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use catraca::core::lock::LockRefusal;
use catraca::core::lock::reply::Lease;
use catraca::core::lock::requests::Proof;
use catraca::core::lock::{LeaseId, LockTerms};
use catraca::core::request::validate_storable;
use catraca::records::{AuditNote, Record, RecordKind};
use catraca::{LockError, Locks};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::{Level, enabled};

use super::admin::{ConnectionExt, PathParams, ResponseFuture};
use super::auth::Caller;
use super::connection::Connection;
use super::request::body;
use super::response::problem::{FullResponse, Problem, json_response};
use super::router::bad_path;
use super::{App, debug_log};
use response_bodies::epoch_millis;

/// The response, or the problem to send instead.
type LockApiResult = Result<FullResponse, Problem>;
type LockApiFuture<'a> = Pin<Box<dyn Future<Output = LockApiResult> + Send + 'a>>;
/// Handles one request.
type LockApiHandler = for<'a> fn(&'a LockApiRequest) -> LockApiFuture<'a>;

/// A request of the lock API, with what its handler needs.
pub struct LockApiRequest {
    pub app: App,
    pub connection: Arc<Connection>,
    pub caller: Arc<Caller>,
    /// The route that matched, such as `/v1/locks/{fence}`.
    route: Arc<str>,
    path: Vec<String>,
    query: Vec<(String, String)>,
    body: Bytes,
}

/// Every route of the lock API.
pub fn routes() -> Router<App> {
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

type CallerExt = Extension<Arc<Caller>>;

/// Makes an axum handler that reads the request, runs `handler` and sends its response.
fn handle(
    handler: LockApiHandler,
) -> impl Fn(State<App>, ConnectionExt, CallerExt, PathParams, Request) -> ResponseFuture
+ Clone
+ Send
+ Sync
+ 'static {
    move |State(app), Extension(connection), Extension(caller), path, request| {
        Box::pin(async move {
            let result = match path {
                Ok(path) => {
                    let request =
                        LockApiRequest::read(app, connection, caller, &path, request).await;
                    match request {
                        Ok(request) => Ok(request.respond(handler).await),
                        Err(problem) => Err(problem),
                    }
                }
                Err(_) => Err(bad_path()),
            };
            result.unwrap_or_else(|problem| problem.to_response()).map(Body::new)
        })
    }
}

impl LockApiRequest {
    async fn read(
        app: App,
        connection: Arc<Connection>,
        caller: Arc<Caller>,
        path: &RawPathParams,
        request: Request,
    ) -> Result<Self, Problem> {
        let path = path.iter().map(|(_, value)| value.to_owned()).collect();
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let query = form_urlencoded::parse(query).into_owned().collect();
        let takes_body = match *request.method() {
            Method::POST => true,
            // Its body holds only a reason, which `DELETE /v1/locks` may leave out.
            Method::DELETE => request.body().size_hint().upper() != Some(0),
            _ => false,
        };
        let (head, body) = request.into_parts();
        let body = match takes_body {
            true => body::read(&head.headers, body, &connection).await?,
            false => Bytes::new(),
        };
        let route = head.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str).into();
        Ok(Self { app, connection, caller, route, path, query, body })
    }

    /// Runs the handler, and logs the call at the level `debug`.
    async fn respond(&self, handler: LockApiHandler) -> FullResponse {
        let response = handler(self).await.unwrap_or_else(|problem| problem_response(&problem));
        if enabled!(Level::DEBUG) {
            let namespace = self.namespace();
            debug_log::log_lock_call(&self.app, namespace, &self.route, &self.body, &response);
        }
        response
    }

    /// Parses the body.
    fn json_body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        super::request::wire::read(&self.body)
    }

    /// The path parameter at this index, from zero; empty if the route has fewer.
    fn path_param(&self, index: usize) -> &str {
        self.path.get(index).map_or("", String::as_str)
    }

    /// The values of the `known` query parameters, in that order. A parameter that is unknown or
    /// sent twice is refused.
    fn query_params<const N: usize>(&self, known: [&str; N]) -> Result<[Option<&str>; N], Problem> {
        let mut found = [None; N];
        for (name, value) in &self.query {
            let index = known.iter().position(|one| one == name);
            let is_repeated = index.is_some_and(|index| found[index].is_some());
            match index {
                Some(index) if !is_repeated => {
                    validate_storable(format_args!("`{name}` in the query"), value)?;
                    found[index] = Some(value.as_str());
                }
                _ => {
                    let detail = format!(
                        "the query takes only these parameters, each once: {}",
                        known.join(", ")
                    );
                    return Err(Problem::bad("bad-query", detail));
                }
            }
        }
        Ok(found)
    }

    fn locks(&self) -> &Arc<Locks> {
        &self.app.locks
    }

    fn terms(&self) -> LockTerms {
        self.app.engine.catalog().locks.clone()
    }

    fn namespace(&self) -> &str {
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
    async fn write_audit(&self, act: &str, target: String, why: Option<&str>) -> bool {
        let Some(records) = &self.app.records else { return false };
        let act = RecordKind::Note(AuditNote { act: act.to_owned(), target });
        let at = self.app.engine.now();
        let receipt = records.record(vec![Record::operator(at, self.caller.name(), why, act)]);
        receipt.await.is_durable()
    }
}

/// A 200 with this body.
fn respond_json<T: Serialize>(body: &T) -> LockApiResult {
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
