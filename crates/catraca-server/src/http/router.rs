//! The general router: every call but the check itself.
//!
//! Must not answer anything that is not listed here.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{any, get, post};
use catraca::Engine;

use super::authorize::{self, Asking};
use super::problem::{Answer, Problem, json};
use super::{Front, body, calls, check};

/// A call that takes a body and gives JSON.
type Call = fn(&Engine, &[u8]) -> Result<Vec<u8>, Problem>;

/// The router over one front.
pub fn router(front: Front) -> Router {
    Router::new()
        // Its POST is answered before this router is asked.
        .route("/v1/check", any(wrong_method))
        .route("/v1/peek", post(peek))
        .route("/v1/settle", post(|state, request| call(state, request, calls::settle)))
        .route("/v1/credit", post(|state, request| call(state, request, calls::credit)))
        .route("/v1/buckets", post(|state, request| call(state, request, calls::buckets)))
        .route("/v1/buckets/{policy}", post(bucket))
        .route("/v1/authorize", any(authorize))
        .route("/healthz", get(|| async { "ok\n" }))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .with_state(front)
}

async fn peek(State(front): State<Front>, request: Request) -> Response<Body> {
    match body::read(request.into_body()).await {
        Ok(body) => whole(check::answer(&front.engine, &body, Engine::peek)),
        Err(problem) => whole(problem.answer()),
    }
}

async fn call(State(front): State<Front>, request: Request, call: Call) -> Response<Body> {
    let done = body::read(request.into_body()).await.and_then(|body| call(&front.engine, &body));
    whole(done.map_or_else(|problem| problem.answer(), json))
}

async fn bucket(
    State(front): State<Front>,
    Path(policy): Path<String>,
    request: Request,
) -> Response<Body> {
    let done = body::read(request.into_body()).await;
    let done = done.and_then(|body| calls::bucket(&front.engine, &policy, &body));
    whole(done.map_or_else(|problem| problem.answer(), json))
}

async fn authorize(
    State(front): State<Front>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response<Body> {
    let asking = Asking {
        peer: peer.ip(),
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
    };
    whole(authorize::answer(&front, &asking))
}

async fn unknown(request: Request) -> Response<Body> {
    let detail = format!("there is no {}", request.uri().path());
    whole(Problem::new(StatusCode::NOT_FOUND, "unknown-call", detail).answer())
}

async fn wrong_method(request: Request) -> Response<Body> {
    let detail = format!("{} does not take {}", request.uri().path(), request.method());
    whole(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", detail).answer())
}

fn whole(answer: Answer) -> Response<Body> {
    answer.map(Body::new).into_response()
}
