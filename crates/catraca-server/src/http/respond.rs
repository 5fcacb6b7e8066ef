//! The way of a request through the front end: the check first, everything else by the router.
//!
//! Must not allocate for the check more than its body and its answer.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::{Method, Request, Response};
use bytes::Bytes;
use catraca::Engine;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use tower::ServiceExt;

use super::auth::Caller;
use super::visit::{Phase, Visit};
use super::{body, check};

/// An answer's body: whole, or whatever the router gives.
pub type Answered = Response<Either<Full<Bytes>, Body>>;

/// Answers a request.
pub async fn respond(request: Request<Incoming>, visit: Arc<Visit>) -> Answered {
    let begun = Instant::now();
    visit.enter(Phase::Body);
    let is_check = request.uri().path() == "/v1/check" && request.method() == Method::POST;
    let guard = &visit.shared.front.guard;
    let caller = match guard.admit(request.method(), request.uri().path(), request.headers()) {
        Ok(caller) => caller,
        Err(answer) => return noted((*answer).map(Either::Left), &visit, begun),
    };
    let answer = if is_check {
        let (head, body) = request.into_parts();
        let answer = match body::read(&head.headers, body, &visit).await {
            Ok(body) => check::answer(&visit.shared.front.engine, &caller, &body, Engine::check),
            Err(problem) => problem.answer(),
        };
        answer.map(Either::Left)
    } else {
        // Boxed, so that the check does not carry its weight.
        Box::pin(route(request, Arc::clone(&visit), caller)).await
    };
    noted(answer, &visit, begun)
}

fn noted(answer: Answered, visit: &Visit, begun: Instant) -> Answered {
    visit.enter(Phase::Answer);
    visit.shared.tally.note(answer.status(), begun.elapsed());
    answer
}

async fn route(request: Request<Incoming>, visit: Arc<Visit>, by: Arc<Caller>) -> Answered {
    let router = visit.shared.router.clone();
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(visit);
    request.extensions_mut().insert(by);
    match router.oneshot(request).await {
        Ok(answer) => answer.map(Either::Right),
        Err(never) => match never {},
    }
}
