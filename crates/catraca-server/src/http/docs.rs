//! The API's description and its pages, served to anybody who reaches the server.
//!
//! Everything is made once and kept. Must load nothing from elsewhere: the pages say so to the
//! browser too.

mod page;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use axum::routing::get;

use super::problem::Problem;
use super::router::bad_path;
use super::{Front, api};

/// Nothing is loaded but the style sheet and an empty icon, nobody frames these pages, and no form
/// leaves them.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
const STYLE: &str = include_str!("docs/style.css");

/// What the server says of itself.
pub fn routes() -> Router<Front> {
    Router::new()
        .route("/openapi.json", get(async || kept("application/json", api::text())))
        .route("/docs", get(async || html(page::calls())))
        .route("/docs/style.css", get(async || kept("text/css; charset=utf-8", STYLE)))
        .route("/docs/errors", get(async || html(page::errors())))
        .route("/docs/errors/{code}", get(error))
}

async fn error(code: Result<Path<String>, PathRejection>) -> Response<Body> {
    let Ok(Path(code)) = code else { return bad_path().answer().map(Body::new) };
    match api::code(&code) {
        Some(code) => html(page::error(code)),
        None => {
            let detail = "there is no such error code; /docs/errors lists all of them";
            let problem = Problem::new(StatusCode::NOT_FOUND, "unknown-code", detail);
            problem.answer().map(Body::new)
        }
    }
}

fn html(page: impl Into<Body>) -> Response<Body> {
    kept("text/html; charset=utf-8", page)
}

/// An answer that is the same for as long as this version runs.
fn kept(kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut answer = Response::new(body.into());
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "public, max-age=60"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        let name: HeaderName = name;
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}
