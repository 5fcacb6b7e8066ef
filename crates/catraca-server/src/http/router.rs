//! The general router: every call but the check itself.
//!
//! Must not answer anything that is not listed here.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{Method, Response, StatusCode};
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use catraca::Engine;

use super::auth::Caller;
use super::authorize::{self, Asking};
use super::calls::Asked;
use super::problem::{Answer, Problem, json};
use super::visit::Visit;
use super::{Front, body, calls, check, desk, docs, ready, settle};

/// A call that takes a body.
type Call = fn(&Engine, &Asked<'_>) -> Result<Answer, Problem>;
type On = Extension<Arc<Visit>>;
type By = Extension<Arc<Caller>>;

/// The router over one front.
pub fn router(front: Front) -> Router {
    Router::new()
        // Its POST is answered before this router is asked; here it knows its other methods.
        .route("/v1/check", post(|on, by, request| checked(on, by, request, Engine::check)))
        .route("/v1/peek", post(|on, by, request| checked(on, by, request, Engine::peek)))
        .route("/v1/settle", post(settled))
        .route("/v1/credit", post(|on, by, request| call(on, by, request, calls::credit)))
        .route("/v1/buckets", post(|on, by, request| call(on, by, request, calls::buckets)))
        .route("/v1/buckets/{policy}", post(bucket))
        .route("/v1/authorize", any(authorize))
        .route("/healthz", get(ready::healthy))
        .route("/readyz", get(ready::ready))
        .route("/metrics", get(ready::metrics))
        .merge(docs::routes())
        .merge(desk::routes())
        .fallback(unknown)
        .method_not_allowed_fallback(other_method)
        .with_state(front)
}

async fn checked(on: On, by: By, request: Request, verb: check::Verb) -> Response<Body> {
    let engine = Arc::clone(&on.shared.front.engine);
    match read(on, request).await {
        Ok(body) => whole(check::answer(&engine, &by, &body, verb)),
        Err(problem) => whole(problem.answer()),
    }
}

async fn call(on: On, by: By, request: Request, call: Call) -> Response<Body> {
    whole(asked(on, by, request, call).await.unwrap_or_else(|problem| problem.answer()))
}

async fn asked(
    Extension(visit): On,
    Extension(by): By,
    request: Request,
    call: impl FnOnce(&Engine, &Asked<'_>) -> Result<Answer, Problem>,
) -> Result<Answer, Problem> {
    let (head, body) = request.into_parts();
    let body = body::read(&head.headers, body, &visit).await?;
    call(&visit.shared.front.engine, &Asked { by: &by, headers: &head.headers, body: &body })
}

async fn settled(State(front): State<Front>, on: On, by: By, request: Request) -> Response<Body> {
    let done = match read(on, request).await {
        Ok(body) => settle::settle(&front, &by, &body).await,
        Err(problem) => Err(problem),
    };
    whole(done.map_or_else(|problem| problem.answer(), json))
}

async fn bucket(
    on: On,
    by: By,
    policy: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response<Body> {
    let done = match policy {
        Ok(Path(policy)) => {
            asked(on, by, request, |engine, asked| calls::bucket(engine, asked, &policy)).await
        }
        Err(_) => Err(bad_path()),
    };
    whole(done.unwrap_or_else(|problem| problem.answer()))
}

async fn read(Extension(visit): On, request: Request) -> Result<bytes::Bytes, Problem> {
    let (head, body) = request.into_parts();
    body::read(&head.headers, body, &visit).await
}

async fn authorize(State(front): State<Front>, on: On, by: By, request: Request) -> Response<Body> {
    let asking = Asking {
        peer: on.peer,
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        caller: &by,
    };
    whole(authorize::answer(&front, &asking))
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
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", detail)
}

fn whole(answer: Answer) -> Response<Body> {
    answer.map(Body::new)
}
