//! The general router: every call but the check itself.
//!
//! Must not answer anything that is not listed here.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use bytes::Bytes;

use super::auth::Caller;
use super::authorize::{self, AuthorizeCall};
use super::calls::Asked;
use super::decide::Verb;
use super::problem::{Answer, Problem, json};
use super::visit::Visit;
use super::{Front, body, calls, check, desk, docs, locks, ready, settle};
use crate::observe::traces::Span;

type On = Extension<Arc<Visit>>;
type By = Extension<Arc<Caller>>;

/// The router over one front.
pub fn router(front: Front) -> Router {
    Router::new()
        // Its POST is answered before this router is asked; here it knows its other methods.
        .route("/v1/check", post(|on, by, request| checked(on, by, request, Verb::Check)))
        .route("/v1/peek", post(|on, by, request| checked(on, by, request, Verb::Peek)))
        .route("/v1/settle", post(settled))
        .route("/v1/credit", post(credit))
        .route("/v1/buckets", post(buckets))
        .route("/v1/buckets/{policy}", post(bucket))
        .route("/v1/authorize", any(authorize))
        .route("/v1/authorize/", any(authorize))
        .route("/v1/authorize/{*rest}", any(authorize))
        .route("/v1/gates/{gate}/authorize", any(authorize))
        .route("/v1/gates/{gate}/authorize/", any(authorize))
        .route("/v1/gates/{gate}/authorize/{*rest}", any(authorize))
        .route("/healthz", get(ready::healthy))
        .route("/readyz", get(ready::ready))
        .route("/metrics", get(ready::metrics))
        .merge(docs::routes())
        .merge(desk::routes())
        .merge(locks::routes())
        .fallback(unknown)
        .method_not_allowed_fallback(other_method)
        .with_state(front)
}

async fn checked(on: On, by: By, request: Request, verb: Verb) -> Response<Body> {
    let visit = Arc::clone(&on);
    let span = span_of(&request);
    match read(on, request).await {
        Ok(body) => {
            let asking = check::Asking { by: &by, span: &span, verb };
            whole(check::answer(&visit.shared.front, &asking, &body).await)
        }
        Err(problem) => whole(problem.answer()),
    }
}

async fn credit(State(front): State<Front>, on: On, by: By, request: Request) -> Response<Body> {
    let done = match with_body(on, request).await {
        Ok((head, body)) => calls::credit(&front, &asked(&by, &head, &body)).await,
        Err(problem) => Err(problem),
    };
    whole(done.unwrap_or_else(|problem| problem.answer()))
}

async fn buckets(State(front): State<Front>, on: On, by: By, request: Request) -> Response<Body> {
    let done = match with_body(on, request).await {
        Ok((head, body)) => calls::buckets(&front, &asked(&by, &head, &body)).await,
        Err(problem) => Err(problem),
    };
    whole(done.unwrap_or_else(|problem| problem.answer()))
}

fn asked<'a>(by: &'a Caller, head: &'a Parts, body: &'a [u8]) -> Asked<'a> {
    Asked { by, headers: &head.headers, body }
}

async fn settled(State(front): State<Front>, on: On, by: By, request: Request) -> Response<Body> {
    let done = match read(on, request).await {
        Ok(body) => settle::settle(&front, &by, &body).await,
        Err(problem) => Err(problem),
    };
    whole(done.map_or_else(|problem| problem.answer(), json))
}

async fn bucket(
    State(front): State<Front>,
    on: On,
    by: By,
    policy: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response<Body> {
    let done = match (policy, with_body(on, request).await) {
        (Ok(Path(policy)), Ok((head, body))) => {
            calls::bucket(&front, &asked(&by, &head, &body), &policy).await
        }
        (Err(_), _) => Err(bad_path()),
        (_, Err(problem)) => Err(problem),
    };
    whole(done.unwrap_or_else(|problem| problem.answer()))
}

async fn read(on: On, request: Request) -> Result<Bytes, Problem> {
    with_body(on, request).await.map(|(_, body)| body)
}

async fn with_body(Extension(visit): On, request: Request) -> Result<(Parts, Bytes), Problem> {
    let (head, body) = request.into_parts();
    let body = body::read(&head.headers, body, &visit).await?;
    Ok((head, body))
}

async fn authorize(State(front): State<Front>, on: On, by: By, request: Request) -> Response<Body> {
    let call = AuthorizeCall {
        peer: on.peer,
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        caller: &by,
        span: &span_of(&request),
    };
    whole(authorize::answer(&front, &call).await)
}

/// The span that the request came with.
fn span_of(request: &Request) -> Span {
    request.extensions().get().cloned().unwrap_or_default()
}

async fn unknown(request: Request) -> Response<Body> {
    whole(unknown_call(request.uri().path()).answer())
}

/// A piece of a path is no text.
pub fn bad_path() -> Problem {
    Problem::bad(
        "bad-path",
        "a piece of the path is not UTF-8 after percent-decoding; encode it so",
    )
}

/// There is no such call.
pub fn unknown_call(path: &str) -> Problem {
    let detail = format!("there is no {path}; /docs lists every call, and so does /openapi.json");
    Problem::new(StatusCode::NOT_FOUND, "unknown-call", detail)
}

/// What a path takes instead is in `Allow`, which the router adds; OPTIONS asks for just that.
async fn other_method(request: Request) -> Response<Body> {
    if request.method() == Method::OPTIONS {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        return answer;
    }
    whole(wrong_method(request.method(), request.uri().path()).answer())
}

/// A path does not take a method.
pub fn wrong_method(method: &Method, path: &str) -> Problem {
    let detail = format!("{path} does not take {method}; `Allow` says what it takes");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", detail)
}

fn whole(answer: Answer) -> Response<Body> {
    answer.map(Body::new)
}
