//! Replaces hyper's bodiless 400 and 431 with problem+json.
//!
//! hyper sends these responses itself, to a request head that it cannot parse or that is too large,
//! and has no hook for them. `TrackedStream` therefore swaps the bytes as they are written.

use std::sync::LazyLock;

use hyper::http::StatusCode;

use super::problem::{PROBLEM_JSON, Problem};

static BAD_HEAD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let detail = "the head of the request is not valid HTTP/1.1; check for forbidden bytes in \
                  headers, an invalid request line, or TLS on a plain port";
    response_bytes(&Problem::bad("bad-head", detail))
});

static HEAD_TOO_LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let detail = "the head of the request is larger than 16 KiB or has more than 100 lines; \
                  send fewer or shorter headers";
    response_bytes(&Problem::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "head-too-large",
        detail,
    ))
});

/// The response to send instead of `response`, if that is one of hyper's own errors.
pub fn problem_for(response: &[u8]) -> Option<&'static [u8]> {
    // hyper writes the status line in one piece: `HTTP/1.1 400 Bad Request`.
    match response.strip_prefix(b"HTTP/1.")?.get(1..6)? {
        b" 400 " => Some(&BAD_HEAD),
        b" 431 " => Some(&HEAD_TOO_LARGE),
        _ => None,
    }
}

/// A complete HTTP response. It closes the connection: after an unreadable head it is unknown where
/// the next request begins.
fn response_bytes(problem: &Problem) -> Vec<u8> {
    let body = problem.to_json();
    let status = problem.status;
    let length = body.len();
    let mut response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {PROBLEM_JSON}\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n"
    )
    .into_bytes();
    response.extend(body);
    response
}
