//! gRPC: rejections as statuses of calls, and statuses of calls as outcomes.
//!
//! The HTTP status of a gRPC call is always 200; its own status is in the trailers. A rejection has
//! no body, so its status is in the head.

use std::fmt::Write;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use super::rejection::Rejection;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// How long the client shall wait before it repeats a call.
const RETRY_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// The HTTP statuses that correspond to the gRPC statuses, from `OK` to `UNAUTHENTICATED`.
const HTTP_STATUSES: [u16; 17] =
    [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401];

/// The response to a gRPC call that is rejected. Other requests get the default response.
pub(super) fn reject_call(rejection: &Rejection, request: &Parts) -> Response<Bytes> {
    if !is_grpc(&request.headers) {
        return rejection.to_response();
    }
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(GRPC_STATUS, grpc_status(rejection.status()).into());
    if let Ok(message) = HeaderValue::try_from(percent_encoded(&rejection.detail())) {
        headers.insert(GRPC_MESSAGE, message);
    }
    if let Some(wait) = rejection.wait() {
        headers.insert(RETRY_PUSHBACK, wait.ceil_millis().into());
    }
    response
}

/// The HTTP status that corresponds to the gRPC status in these headers or trailers.
pub(super) fn outcome_status(headers: &HeaderMap) -> Option<u16> {
    let status = headers.get(GRPC_STATUS)?.to_str().ok()?.parse::<usize>().ok()?;
    HTTP_STATUSES.get(status).copied()
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// The gRPC status of a rejection.
fn grpc_status(status: StatusCode) -> u16 {
    match status {
        StatusCode::BAD_REQUEST => 3,            // INVALID_ARGUMENT
        StatusCode::FORBIDDEN => 7,              // PERMISSION_DENIED
        StatusCode::INTERNAL_SERVER_ERROR => 13, // INTERNAL
        StatusCode::SERVICE_UNAVAILABLE => 14,   // UNAVAILABLE
        _ => 8,                                  // RESOURCE_EXHAUSTED
    }
}

/// `grpc-message` is ASCII; every other byte is written as `%` and two hexadecimal digits.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' | ..=0x1f | 0x7f.. => {
                let _ = write!(encoded, "%{byte:02X}");
            }
            _ => encoded.push(char::from(byte)),
        }
    }
    encoded
}
