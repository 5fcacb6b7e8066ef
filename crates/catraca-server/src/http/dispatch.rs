//! Serves one request: authentication, the check directly, all other calls by the router.
//!
//! The check bypasses the router because it is the hot path: it allocates only its body and its
//! response.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use catraca::CheckMode;
use http_body_util::Either;
use hyper::body::Incoming;
use tower::ServiceExt;

use super::auth;
use super::auth::roles;
use super::auth::roles::EndpointLookup;
use super::bodies::problem::FullResponse;
use super::bodies::request_body;
use super::connection::{HttpConnection, HttpResponse};
use super::endpoints::check;
use super::endpoints::check::CheckRequest;
use crate::auth::Caller;
use crate::listener::Phase;
use crate::observe::call_metrics::CallResult;
use crate::observe::traces::RequestSpan;

/// Serves a request.
pub async fn dispatch(request: Request<Incoming>, http: Arc<HttpConnection>) -> HttpResponse {
    let started = Instant::now();
    // The head has been read; until the body has arrived, `body_timeout` counts.
    http.connection.enter(Phase::Body);
    let lookup = roles::find(request.method().as_str(), request.uri().path());
    let span = begin_span(&request, &lookup, &http);
    let admitted = authenticate(&request, &lookup, &http);
    // Before the first await, so that it takes no space in the future.
    drop(lookup);
    let is_check = request.uri().path() == "/v1/check" && request.method() == Method::POST;
    let response = match admitted {
        Err(response) => (*response).map(Either::Left),
        Ok(caller) if is_check => serve_check(request, &http, &caller, &span).await,
        // Boxed, so that the future of the check, which is created for every request, stays small.
        Ok(caller) => Box::pin(route(request, &http, caller, span.clone())).await,
    };
    span.end(response.status());
    finish(response, &http, started, is_check)
}

/// Serves `POST /v1/check`.
async fn serve_check(
    request: Request<Incoming>,
    http: &HttpConnection,
    caller: &Caller,
    span: &RequestSpan,
) -> HttpResponse {
    let (head, body) = request.into_parts();
    let check = CheckRequest { caller, span, mode: CheckMode::Check };
    let response = match request_body::read(&head.headers, body, &http.connection).await {
        Ok(body) => check::handle(&http.context, &check, &body).await,
        Err(problem) => problem.to_response(),
    };
    response.map(Either::Left)
}

/// Begins the trace span of a call, if tracing is on. It is named by the endpoint's path template
/// and never by the path, which a caller chooses.
fn begin_span(
    request: &Request<Incoming>,
    lookup: &EndpointLookup,
    http: &HttpConnection,
) -> RequestSpan {
    let Some(traces) = &http.context.traces else { return RequestSpan::default() };
    let template = match lookup {
        EndpointLookup::Found(endpoint) => Some(endpoint.path),
        EndpointLookup::WrongMethod(_) | EndpointLookup::UnknownPath => None,
    };
    traces.begin(request.method(), template, request.headers())
}

/// The caller of a request, or the response that refuses it.
fn authenticate(
    request: &Request<Incoming>,
    lookup: &EndpointLookup,
    http: &HttpConnection,
) -> Result<Arc<Caller>, Box<FullResponse>> {
    let config = http.context.reloadable.load();
    let is_proxy = || config.is_trusted_proxy(http.connection.peer);
    auth::admit(&config, request, lookup, is_proxy)
}

/// Counts a response, and closes the connection after it if the server stops.
fn finish(
    mut response: HttpResponse,
    http: &HttpConnection,
    started: Instant,
    is_check: bool,
) -> HttpResponse {
    http.connection.enter(Phase::Answer);
    http.context.calls.note(call_result(response.status()), started.elapsed(), is_check);
    if http.connection.is_stopping() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn call_result(status: StatusCode) -> CallResult {
    if status.is_server_error() {
        CallResult::ServerError
    } else if status.is_client_error() {
        CallResult::ClientError
    } else {
        CallResult::Done
    }
}

/// Serves any other call. Handlers take the connection, the caller and the span from the request's
/// extensions.
async fn route(
    request: Request<Incoming>,
    http: &HttpConnection,
    caller: Arc<Caller>,
    span: RequestSpan,
) -> HttpResponse {
    let router = http.router.clone();
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(Arc::clone(&http.connection));
    request.extensions_mut().insert(caller);
    request.extensions_mut().insert(span);
    match router.oneshot(request).await {
        Ok(response) => response.map(Either::Right),
        Err(never) => match never {},
    }
}
