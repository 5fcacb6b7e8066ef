//! The general router: every call but the check itself.
//!
//! Must not answer anything that is not listed here.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{Method, Response, StatusCode};
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use catraca::Engine;

use super::auth::Caller;
use super::authorize::{self, Asking};
use super::problem::{Answer, Problem, json};
use super::visit::Visit;
use super::{Front, body, calls, check, desk, ready, settle};

/// A call that takes a body and gives JSON.
type Call = fn(&Engine, &Caller, &[u8]) -> Result<Vec<u8>, Problem>;
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
    let engine = Arc::clone(&on.shared.front.engine);
    let done = read(on, request).await.and_then(|body| call(&engine, &by, &body));
    whole(done.map_or_else(|problem| problem.answer(), json))
}

async fn settled(State(front): State<Front>, on: On, by: By, request: Request) -> Response<Body> {
    let done = match read(on, request).await {
        Ok(body) => settle::settle(&front, &by, &body).await,
        Err(problem) => Err(problem),
    };
    whole(done.map_or_else(|problem| problem.answer(), json))
}

async fn bucket(on: On, by: By, Path(policy): Path<String>, request: Request) -> Response<Body> {
    let engine = Arc::clone(&on.shared.front.engine);
    let done = read(on, request).await;
    let done = done.and_then(|body| calls::bucket(&engine, &by, &policy, &body));
    whole(done.map_or_else(|problem| problem.answer(), json))
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

/// There is no such call.
pub fn unknown_call(path: &str) -> Problem {
    let detail = format!(
        "there is no {path}; there are /v1/check, /v1/peek, /v1/settle, /v1/credit, /v1/buckets, \
         /v1/buckets/POLICY, /v1/authorize, /healthz, /readyz and /metrics, and for operators \
         /v1/blocks, /v1/blocklist, /v1/allowlist, /v1/facts, /v1/policies, /v1/config, \
         /v1/config/reload, /v1/reset, /v1/stats, /v1/audit, /v1/events, /v1/whoami and /v1/privacy"
    );
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
