//! `/openapi.json`, the page of `/` with links, and the HTML pages of `/docs` for the operations
//! and for the error codes. No key is needed.
//!
//! Pages must load nothing from other hosts: a server without internet access shows them, and the
//! content security policy forbids it.

mod page;

use bytes::Bytes;
use hyper::http::{HeaderName, HeaderValue, StatusCode, header};

use crate::http::bodies::error_codes::find_error_code;
use crate::http::bodies::problem::{HttpResponse, Problem, typed_response};
use crate::http::endpoint::ApiResult;
use crate::http::request::ApiRequest;

/// The content security policy: only the style sheet and the empty icon are loaded; no frames and
/// no forms.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const STYLE: &str = include_str!("docs/style.css");

/// `GET /openapi.json`.
pub async fn document(request: &ApiRequest) -> ApiResult {
    Ok(static_response("application/json", (request.http().openapi.text)()))
}

/// `GET /`.
pub async fn index(_request: &ApiRequest) -> ApiResult {
    Ok(html(page::index()))
}

/// `GET /docs`.
pub async fn operations(request: &ApiRequest) -> ApiResult {
    Ok(html(page::operations((request.http().openapi.document)())))
}

/// `GET /docs/style.css`.
pub async fn style(_request: &ApiRequest) -> ApiResult {
    Ok(static_response("text/css; charset=utf-8", STYLE))
}

/// `GET /docs/errors`.
pub async fn errors(_request: &ApiRequest) -> ApiResult {
    Ok(html(page::errors()))
}

/// `GET /docs/errors/{code}`.
pub async fn error(request: &ApiRequest) -> ApiResult {
    let unknown = || {
        let detail = "unknown error code; /docs/errors lists all of them";
        Problem::new(StatusCode::NOT_FOUND, "unknown-code", detail)
    };
    let code = find_error_code(request.path_param(0)).ok_or_else(unknown)?;
    Ok(html(page::error(code)))
}

fn html(page: impl Into<Bytes>) -> HttpResponse {
    static_response("text/html; charset=utf-8", page)
}

/// A response that never changes while this process runs, so that it may be cached.
fn static_response(media_type: &'static str, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = typed_response(media_type, body);
    for (name, value) in [
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
