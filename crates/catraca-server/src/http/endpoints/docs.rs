//! `/openapi.json`, and the HTML pages of `/docs` for it and for the error codes. No key is needed.
//!
//! Pages must load nothing from other hosts: a server without internet access shows them, and the
//! content security policy forbids it.

mod page;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use axum::routing::get;
use serde_json::Value;

use crate::context::ServerContext;
use crate::http::bodies::error_codes::find_error_code;
use crate::http::bodies::problem::Problem;
use crate::http::bodies::problem::bad_path;

/// The content security policy: only the style sheet and the empty icon are loaded; no frames and
/// no forms.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const STYLE: &str = include_str!("docs/style.css");

/// The routes of the documentation. The functions return the OpenAPI document and its text, which
/// are made at the first request.
pub fn routes(
    document: fn() -> &'static Value,
    text: fn() -> &'static str,
) -> Router<Arc<ServerContext>> {
    Router::new()
        .route("/openapi.json", get(async move || static_response("application/json", text())))
        .route("/docs", get(async move || html(page::operations(document()))))
        .route("/docs/style.css", get(async || static_response("text/css; charset=utf-8", STYLE)))
        .route("/docs/errors", get(async || html(page::errors())))
        .route("/docs/errors/{code}", get(error))
}

async fn error(code: Result<Path<String>, PathRejection>) -> Response<Body> {
    let Ok(Path(code)) = code else { return bad_path().to_response().map(Body::new) };
    match find_error_code(&code) {
        Some(code) => html(page::error(code)),
        None => {
            let detail = "unknown error code; /docs/errors lists all of them";
            let problem = Problem::new(StatusCode::NOT_FOUND, "unknown-code", detail);
            problem.to_response().map(Body::new)
        }
    }
}

fn html(page: impl Into<Body>) -> Response<Body> {
    static_response("text/html; charset=utf-8", page)
}

/// A response that never changes while this process runs, so that it may be cached.
fn static_response(media_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    for (name, value) in [
        (header::CONTENT_TYPE, media_type),
        (header::CACHE_CONTROL, "public, max-age=60"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        let name: HeaderName = name;
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
