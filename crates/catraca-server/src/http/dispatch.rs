//! Serves one request: finds its endpoint, admits its caller, reads its body, runs the handler.

use std::sync::Arc;
use std::time::Instant;

use hyper::body::{Body, Incoming};
use hyper::http::{HeaderValue, Request, StatusCode, header};

use super::auth::{self, AdmittedCall};
use super::bodies::problem::{HttpResponse, Problem};
use super::bodies::request_body;
use super::connection::HttpConnection;
use super::endpoint::{EndpointLookup, RequestBody};
use super::request::ApiRequest;
use super::table;
use crate::listener::Phase;
use crate::observe::call_metrics::CallResult;
use crate::observe::traces::RequestSpan;

/// The endpoint whose latency is measured on its own.
const CHECK: &str = "/v1/check";

/// Serves a request.
pub async fn dispatch(request: Request<Incoming>, http: Arc<HttpConnection>) -> HttpResponse {
    let started = Instant::now();
    // The head has been read; until the body has arrived, `body_timeout` counts.
    http.connection.begin_request();
    let lookup = table::find(request.method().as_str(), request.uri().path());
    let span = begin_span(&request, &lookup, &http);
    let admitted = admit(&request, lookup, &http);
    let is_check = admitted.as_ref().is_ok_and(|call| call.endpoint.path == CHECK);
    let response = match admitted {
        Ok(call) => {
            let response = handle(request, &http, call, span.clone()).await;
            response.unwrap_or_else(|problem| problem.to_response())
        }
        Err(response) => *response,
    };
    span.end(response.status());
    finish(response, &http, started, is_check)
}

/// Reads the rest of a request and runs the handler of its endpoint.
async fn handle(
    request: Request<Incoming>,
    http: &Arc<HttpConnection>,
    call: AdmittedCall,
    span: RequestSpan,
) -> Result<HttpResponse, Problem> {
    let AdmittedCall { endpoint, caller } = call;
    let (head, body) = request.into_parts();
    let mut request = ApiRequest::new(Arc::clone(http), caller, endpoint.path, head, span)?;
    let reads_body = match endpoint.body {
        RequestBody::Empty => false,
        RequestBody::Required(_) => true,
        RequestBody::Optional(_) => body.size_hint().upper() != Some(0),
    };
    if reads_body {
        request.body = request_body::read(request.headers(), body, &http.connection).await?;
    }
    (endpoint.handler)(&request).await
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
