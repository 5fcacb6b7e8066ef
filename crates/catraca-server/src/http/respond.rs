//! The way of a request through the front end: the check first, everything else by the router.
//!
//! Must not allocate for the check more than its body and its answer.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response, header};
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use tower::ServiceExt;

use super::auth::Caller;
use super::check::Asking;
use super::decide::Verb;
use super::problem::Answer;
use super::roles::{self, Found};
use super::visit::{Phase, Visit};
use super::{body, check};
use crate::observe::traces::Span;

/// An answer's body: whole, or whatever the router gives.
pub type Answered = Response<Either<Full<Bytes>, Body>>;

/// Answers a request.
pub async fn respond(request: Request<Incoming>, visit: Arc<Visit>) -> Answered {
    let begun = Instant::now();
    visit.enter(Phase::Body);
    let span = begin(&request, &visit);
    let is_check = request.uri().path() == "/v1/check" && request.method() == Method::POST;
    let answer = match admit(&request, &visit) {
        Err(answer) => (*answer).map(Either::Left),
        Ok(caller) if is_check => checked(request, &visit, &caller, &span).await,
        // Boxed, so that the check does not carry its weight.
        Ok(caller) => Box::pin(route(request, Arc::clone(&visit), caller, span.clone())).await,
    };
    span.end(answer.status());
    noted(answer, &visit, begun, is_check)
}

/// The check, which everybody calls.
async fn checked(request: Request<Incoming>, visit: &Visit, by: &Caller, span: &Span) -> Answered {
    let (head, body) = request.into_parts();
    let asking = Asking { by, span, verb: Verb::Check };
    let answer = match body::read(&head.headers, body, visit).await {
        Ok(body) => check::answer(&visit.shared.front, &asking, &body).await,
        Err(problem) => problem.answer(),
    };
    answer.map(Either::Left)
}

/// The span of a call, if calls have any; named by a row of the table and never by a path.
fn begin(request: &Request<Incoming>, visit: &Visit) -> Span {
    let Some(traces) = &visit.shared.front.traces else { return Span::default() };
    let row = match roles::find(request.method().as_str(), request.uri().path()) {
        Found::Row(row) => Some(row.path),
        Found::OtherMethod(_) | Found::Nothing => None,
    };
    traces.begin(request.method(), row, request.headers())
}

fn admit(request: &Request<Incoming>, visit: &Visit) -> Result<Arc<Caller>, Box<Answer>> {
    let live = visit.shared.front.live.load();
    let is_proxy = || live.settings.trusts(visit.peer);
    live.guard.admit(request.method(), request.uri().path(), request.headers(), is_proxy)
}

fn noted(mut answer: Answered, visit: &Visit, begun: Instant, is_check: bool) -> Answered {
    visit.enter(Phase::Answer);
    visit.shared.tally.note(answer.status(), begun.elapsed(), is_check);
    if visit.is_stopping() {
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

async fn route(
    request: Request<Incoming>,
    visit: Arc<Visit>,
    by: Arc<Caller>,
    span: Span,
) -> Answered {
    let router = visit.shared.router.clone();
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(visit);
    request.extensions_mut().insert(by);
    request.extensions_mut().insert(span);
    match router.oneshot(request).await {
        Ok(answer) => answer.map(Either::Right),
        Err(never) => match never {},
    }
}
