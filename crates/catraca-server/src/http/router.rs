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
use catraca::CheckMode;

use super::bodies::problem::{
    FullResponse, Problem, bad_path, json_response, unknown_call, wrong_method,
};
use super::bodies::request_body;
use super::endpoints::authorize::{self, AuthorizeCall};
use super::endpoints::credit_and_buckets::{self, CreditOrBucketRequest};
use super::endpoints::request::{CallerExt, ConnectionExt, ContextState};
use super::endpoints::{admin, check, docs, locks, ready, settle};
use super::openapi;
use crate::auth::Caller;
use crate::context::ServerContext;
use crate::observe::traces::RequestSpan;

/// Builds the router.
pub fn router(context: Arc<ServerContext>) -> Router {
    Router::new()
        // `POST` never arrives here (see `dispatch`); the route exists for 405 and `Allow` of other
        // methods.
        .route(
            "/v1/check",
            post(|context, connection, caller, request| {
                checks(context, connection, caller, request, CheckMode::Check)
            }),
        )
        .route(
            "/v1/peek",
            post(|context, connection, caller, request| {
                checks(context, connection, caller, request, CheckMode::Peek)
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
        .merge(docs::routes(openapi::document, openapi::document_text))
        .merge(admin::routes())
        .merge(locks::routes())
        .fallback(unknown)
        .method_not_allowed_fallback(other_method)
        .with_state(context)
}

async fn checks(
    State(context): ContextState,
    connection: ConnectionExt,
    caller: CallerExt,
    request: Request,
    mode: CheckMode,
) -> Response<Body> {
    let span = span_of(&request);
    match read(connection, request).await {
        Ok(body) => {
            let check = check::CheckRequest { caller: &caller, span: &span, mode };
            into_body(check::handle(&context, &check, &body).await)
        }
        Err(problem) => into_body(problem.to_response()),
    }
}

async fn credit(
    State(context): ContextState,
    connection: ConnectionExt,
    caller: CallerExt,
    request: Request,
) -> Response<Body> {
    let result = match with_body(connection, request).await {
        Ok((head, body)) => {
            credit_and_buckets::credit(&context, &request_parts(&caller, &head, &body)).await
        }
        Err(problem) => Err(problem),
    };
    into_body(result.unwrap_or_else(|problem| problem.to_response()))
}

async fn buckets(
    State(context): ContextState,
    connection: ConnectionExt,
    caller: CallerExt,
    request: Request,
) -> Response<Body> {
    let result = match with_body(connection, request).await {
        Ok((head, body)) => {
            credit_and_buckets::buckets(&context, &request_parts(&caller, &head, &body)).await
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
    State(context): ContextState,
    connection: ConnectionExt,
    caller: CallerExt,
    request: Request,
) -> Response<Body> {
    let result = match read(connection, request).await {
        Ok(body) => settle::settle(&context, &caller, &body).await,
        Err(problem) => Err(problem),
    };
    into_body(result.map_or_else(|problem| problem.to_response(), json_response))
}

async fn bucket(
    State(context): ContextState,
    connection: ConnectionExt,
    caller: CallerExt,
    policy: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response<Body> {
    let result = match (policy, with_body(connection, request).await) {
        (Ok(Path(policy)), Ok((head, body))) => {
            credit_and_buckets::bucket(&context, &request_parts(&caller, &head, &body), &policy)
                .await
        }
        (Err(_), _) => Err(bad_path()),
        (_, Err(problem)) => Err(problem),
    };
    into_body(result.unwrap_or_else(|problem| problem.to_response()))
}

async fn read(connection: ConnectionExt, request: Request) -> Result<Bytes, Problem> {
    with_body(connection, request).await.map(|(_, body)| body)
}

async fn with_body(
    Extension(connection): ConnectionExt,
    request: Request,
) -> Result<(Parts, Bytes), Problem> {
    let (head, body) = request.into_parts();
    let body = request_body::read(&head.headers, body, &connection).await?;
    Ok((head, body))
}

async fn authorize(
    State(context): ContextState,
    connection: ConnectionExt,
    caller: CallerExt,
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
    into_body(authorize::answer(&context, &call).await)
}

/// The span that `dispatch` put into the request.
fn span_of(request: &Request) -> RequestSpan {
    request.extensions().get().cloned().unwrap_or_default()
}

async fn unknown(request: Request) -> Response<Body> {
    into_body(unknown_call(request.uri().path()).to_response())
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

fn into_body(response: FullResponse) -> Response<Body> {
    response.map(Body::new)
}
