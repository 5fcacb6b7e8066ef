//! Serves one request: finds its endpoint, admits its caller, reads its body, runs the handler.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use hyper::body::{Body, Incoming};
use hyper::http::request::Parts;
use hyper::http::{HeaderValue, Request, StatusCode, header};

use super::auth::{self, AdmittedCall};
use super::bodies::problem::{HttpResponse, Problem};
use super::bodies::request_body;
use super::connection::HttpConnection;
use super::endpoint::{ApiResult, Endpoint, EndpointLookup, RequestBody};
use super::request::ApiRequest;
use super::table;
use crate::listener::{Connection, Phase};
use crate::observe::call_metrics::CallResult;
use crate::observe::traces::RequestSpan;

/// Serves a request.
pub async fn dispatch(request: Request<Incoming>, http: Arc<HttpConnection>) -> HttpResponse {
    let started = Instant::now();
    // The head has been read; until the body has arrived, `body_timeout` counts.
    http.connection.begin_request();
    let lookup = table::find(request.method().as_str(), request.uri().path());
    let span = begin_span(&request, &lookup, &http);
    let admitted = admit(&request, lookup, &http);
    let is_check = admitted.as_ref().is_ok_and(|call| call.endpoint.path == table::CHECK_PATH);
    let (head, mut body) = request.into_parts();
    let response = match admitted {
        Ok(call) => {
            let response = handle(head, &mut body, &http, call, span.clone()).await;
            response.unwrap_or_else(|problem| problem.to_response())
        }
        Err(response) => *response,
    };
    span.end(response.status());
    if !body.is_end_stream() {
        // hyper discards a rest that has already arrived, or closes after the response. It decides
        // when it finds that the body was dropped; only then does it write `Connection: close`.
        drop(body);
        tokio::task::yield_now().await;
    }
    finish(response, &http, started, is_check)
}

/// Reads the rest of a request and runs the handler of its endpoint.
async fn handle(
    head: Parts,
    body: &mut Incoming,
    http: &Arc<HttpConnection>,
    call: AdmittedCall,
    span: RequestSpan,
) -> ApiResult {
    let AdmittedCall { endpoint, caller } = call;
    let mut request = ApiRequest::new(Arc::clone(http), caller, endpoint.path, head, span)?;
    if endpoint.checks_query() {
        request.check_query(endpoint.docs.query.iter().map(|known| known.name))?;
    }
    let reads_body = match endpoint.body {
        RequestBody::Empty => false,
        RequestBody::Required(_) => true,
        RequestBody::Optional(_) => body.size_hint().upper() != Some(0),
    };
    if reads_body {
        request.body = request_body::read(request.headers(), body, &http.connection).await?;
    }
    run_handler(endpoint, &request).await
}

/// Runs a handler. When `answer_timeout` has passed, `Connections` wakes this task, and the poll
/// that finds no response returns the 503.
async fn run_handler(endpoint: &Endpoint, request: &ApiRequest) -> ApiResult {
    let connection = request.connection();
    connection.begin_handler();
    let mut handler = (endpoint.handler)(request);
    poll_fn(|cx| match handler.as_mut().poll(cx) {
        Poll::Pending if connection.has_expired() => Poll::Ready(Err(too_slow(connection))),
        polled => polled,
    })
    .await
}

fn too_slow(connection: &Connection) -> Problem {
    let timeout = connection.timeouts().answer;
    let detail = format!(
        "the call was not finished within answer_timeout ({timeout:?}), because a store or the \
         records were slow; it may have been applied"
    );
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "answer-timeout", detail).retry_after(1)
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

/// The caller of a request with its endpoint, or the response that refuses it.
fn admit(
    request: &Request<Incoming>,
    lookup: EndpointLookup,
    http: &HttpConnection,
) -> Result<AdmittedCall, Box<HttpResponse>> {
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
