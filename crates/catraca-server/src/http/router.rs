//! The router: every call but `POST /v1/check`, which `dispatch` serves before.

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
use super::connection::Connection;
use super::credit_and_buckets::CreditOrBucketRequest;
use super::engine_calls::CheckMode;
use super::openapi::docs;
use super::request::body;
use super::response::problem::{FullResponse, Problem, json_response};
use super::{App, admin, check, credit_and_buckets, locks, ready, settle};
use crate::observe::traces::RequestSpan;

/// The connection of a request, from `dispatch`.
type RouterConnection = Extension<Arc<Connection>>;
/// The caller of a request, from `dispatch`.
type RouterCaller = Extension<Arc<Caller>>;

/// Builds the router.
pub fn router(app: App) -> Router {
    Router::new()
        // `POST` never arrives here (see `dispatch`); the route exists for 405 and `Allow` of other
        // methods.
        .route(
            "/v1/check",
            post(|connection, caller, request| {
                checks(connection, caller, request, CheckMode::Check)
            }),
        )
        .route(
            "/v1/peek",
            post(|connection, caller, request| {
                checks(connection, caller, request, CheckMode::Peek)
            }),
        )
        .route("/v1/settle", post(settle))
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
        .merge(admin::routes())
        .merge(locks::routes())
        .fallback(unknown)
        .method_not_allowed_fallback(other_method)
        .with_state(app)
}

async fn checks(
    connection: RouterConnection,
    caller: RouterCaller,
    request: Request,
    mode: CheckMode,
) -> Response<Body> {
    let server = Arc::clone(&connection.server);
    let span = span_of(&request);
    match read(connection, request).await {
        Ok(body) => {
            let check = check::CheckRequest { caller: &caller, span: &span, mode };
            into_body(check::handle(&server.app, &check, &body).await)
        }
        Err(problem) => into_body(problem.to_response()),
    }
}

async fn credit(
    State(app): State<App>,
    connection: RouterConnection,
    caller: RouterCaller,
    request: Request,
) -> Response<Body> {
    let result = match with_body(connection, request).await {
        Ok((head, body)) => {
            credit_and_buckets::credit(&app, &request_parts(&caller, &head, &body)).await
        }
        Err(problem) => Err(problem),
    };
    into_body(result.unwrap_or_else(|problem| problem.to_response()))
}

async fn buckets(
    State(app): State<App>,
    connection: RouterConnection,
    caller: RouterCaller,
    request: Request,
) -> Response<Body> {
    let result = match with_body(connection, request).await {
        Ok((head, body)) => {
            credit_and_buckets::buckets(&app, &request_parts(&caller, &head, &body)).await
        }
        Err(problem) => Err(problem),
    };
    into_body(result.unwrap_or_else(|problem| problem.to_response()))
}

fn request_parts<'a>(
    caller: &'a Caller,
    head: &'a Parts,
    body: &'a [u8],
) -> CreditOrBucketRequest<'a> {
    CreditOrBucketRequest { caller, headers: &head.headers, body }
}

async fn settle(
    State(app): State<App>,
    connection: RouterConnection,
    caller: RouterCaller,
    request: Request,
) -> Response<Body> {
    let result = match read(connection, request).await {
        Ok(body) => settle::settle(&app, &caller, &body).await,
        Err(problem) => Err(problem),
    };
    into_body(result.map_or_else(|problem| problem.to_response(), json_response))
}

async fn bucket(
    State(app): State<App>,
    connection: RouterConnection,
    caller: RouterCaller,
    policy: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response<Body> {
    let result = match (policy, with_body(connection, request).await) {
        (Ok(Path(policy)), Ok((head, body))) => {
            credit_and_buckets::bucket(&app, &request_parts(&caller, &head, &body), &policy).await
        }
        (Err(_), _) => Err(bad_path()),
        (_, Err(problem)) => Err(problem),
    };
    into_body(result.unwrap_or_else(|problem| problem.to_response()))
}

async fn read(connection: RouterConnection, request: Request) -> Result<Bytes, Problem> {
    with_body(connection, request).await.map(|(_, body)| body)
}

async fn with_body(
    Extension(connection): RouterConnection,
    request: Request,
) -> Result<(Parts, Bytes), Problem> {
    let (head, body) = request.into_parts();
    let body = body::read(&head.headers, body, &connection).await?;
    Ok((head, body))
}

async fn authorize(
    State(app): State<App>,
    connection: RouterConnection,
    caller: RouterCaller,
    request: Request,
) -> Response<Body> {
    let call = AuthorizeCall {
        peer: connection.peer,
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        caller: &caller,
        span: &span_of(&request),
    };
    into_body(authorize::answer(&app, &call).await)
}

/// The span that `dispatch` put into the request.
fn span_of(request: &Request) -> RequestSpan {
    request.extensions().get().cloned().unwrap_or_default()
}

async fn unknown(request: Request) -> Response<Body> {
    into_body(unknown_call(request.uri().path()).to_response())
}

/// 400: a path segment is not UTF-8 after percent-decoding.
pub fn bad_path() -> Problem {
    Problem::bad(
        "bad-path",
        "a segment of the path is not UTF-8 after percent-decoding; encode it as UTF-8",
    )
}

/// 404: there is no such call.
pub fn unknown_call(path: &str) -> Problem {
    let detail = format!("there is no call {path}; see /docs or /openapi.json for all calls");
    Problem::new(StatusCode::NOT_FOUND, "unknown-call", detail)
}

/// 405. The router adds `Allow`; an OPTIONS request gets 204 with it.
async fn other_method(request: Request) -> Response<Body> {
    if request.method() == Method::OPTIONS {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        return response;
    }
    into_body(wrong_method(request.method(), request.uri().path()).to_response())
}

/// 405: the path exists, but not with this method.
pub fn wrong_method(method: &Method, path: &str) -> Problem {
    let detail = format!("{path} does not support {method}; the header `Allow` lists its methods");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", detail)
}

fn into_body(response: FullResponse) -> Response<Body> {
    response.map(Body::new)
}
