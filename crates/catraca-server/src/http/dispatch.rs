//! Serves one request: authentication, the check directly, all other calls by the router.
//!
//! The check bypasses the router because it is the hot path: it allocates only its body and its
//! response.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response, header};
use bytes::Bytes;
use catraca::CheckMode;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use tower::ServiceExt;

use super::auth;
use super::auth::roles;
use super::auth::roles::EndpointLookup;
use super::bodies::problem::FullResponse;
use super::bodies::request_body;
use super::endpoints::check;
use super::endpoints::check::CheckRequest;
use crate::auth::Caller;
use crate::listener::connection::{Connection, Phase};
use crate::observe::traces::RequestSpan;

/// A response with a complete body, or with a body of the router.
pub type DispatchResponse = Response<Either<Full<Bytes>, Body>>;

/// Serves a request.
pub async fn dispatch(request: Request<Incoming>, connection: Arc<Connection>) -> DispatchResponse {
    let started = Instant::now();
    // The head has been read; until the body has arrived, `body_timeout` counts.
    connection.enter(Phase::Body);
    let span = begin_span(&request, &connection);
    let is_check = request.uri().path() == "/v1/check" && request.method() == Method::POST;
    let response = match authenticate(&request, &connection) {
        Err(response) => (*response).map(Either::Left),
        Ok(caller) if is_check => serve_check(request, &connection, &caller, &span).await,
        // Boxed, so that the future of the check, which is created for every request, stays small.
        Ok(caller) => Box::pin(route(request, Arc::clone(&connection), caller, span.clone())).await,
    };
    span.end(response.status());
    finish(response, &connection, started, is_check)
}

/// Serves `POST /v1/check`.
async fn serve_check(
    request: Request<Incoming>,
    connection: &Connection,
    caller: &Caller,
    span: &RequestSpan,
) -> DispatchResponse {
    let (head, body) = request.into_parts();
    let check = CheckRequest { caller, span, mode: CheckMode::Check };
    let response = match request_body::read(&head.headers, body, connection).await {
        Ok(body) => check::handle(&connection.server.context, &check, &body).await,
        Err(problem) => problem.to_response(),
    };
    response.map(Either::Left)
}

/// Begins the trace span of a call, if tracing is on. It is named by the endpoint's path template
/// and never by the path, which a caller chooses.
fn begin_span(request: &Request<Incoming>, connection: &Connection) -> RequestSpan {
    let Some(traces) = &connection.server.context.traces else { return RequestSpan::default() };
    let template = match roles::find(request.method().as_str(), request.uri().path()) {
        EndpointLookup::Found(endpoint) => Some(endpoint.path),
        EndpointLookup::WrongMethod(_) | EndpointLookup::UnknownPath => None,
    };
    traces.begin(request.method(), template, request.headers())
}

/// The caller of a request, or the response that refuses it.
fn authenticate(
    request: &Request<Incoming>,
    connection: &Connection,
) -> Result<Arc<Caller>, Box<FullResponse>> {
    let config = connection.server.context.reloadable.load();
    let is_proxy = || config.settings.is_trusted_proxy(connection.peer);
    auth::admit(&config, request.method(), request.uri().path(), request.headers(), is_proxy)
}

/// Counts a response, and closes the connection after it if the server stops.
fn finish(
    mut response: DispatchResponse,
    connection: &Connection,
    started: Instant,
    is_check: bool,
) -> DispatchResponse {
    connection.enter(Phase::Answer);
    connection.server.metrics.note(response.status(), started.elapsed(), is_check);
    if connection.is_stopping() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Serves any other call. Handlers take the connection, the caller and the span from the request's
/// extensions.
async fn route(
    request: Request<Incoming>,
    connection: Arc<Connection>,
    caller: Arc<Caller>,
    span: RequestSpan,
) -> DispatchResponse {
    let router = connection.server.router.clone();
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(connection);
    request.extensions_mut().insert(caller);
    request.extensions_mut().insert(span);
    match router.oneshot(request).await {
        Ok(response) => response.map(Either::Right),
        Err(never) => match never {},
    }
}
