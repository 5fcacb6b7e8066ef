//! Answers that hyper gives by itself, to heads that it cannot read, made into problems.
//!
//! Hyper sends them without a body and offers no say in it, so they are replaced on their way out.
//! Must replace nothing but these.

use std::sync::LazyLock;

use axum::http::StatusCode;

use super::problem::{KIND, Problem};

static BAD_HEAD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let detail = "the head of the request is not HTTP/1.1: look for forbidden bytes in headers, a \
                  broken request line, or another protocol on this port";
    whole(&Problem::bad("bad-head", detail))
});

static HEAD_TOO_LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let detail = "the head of the request may have 16 KiB and 100 lines; send fewer and shorter \
                  headers";
    whole(&Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "head-too-large", detail))
});

/// What to send in place of an answer of hyper's own.
pub fn fuller(answer: &[u8]) -> Option<&'static [u8]> {
    match answer.strip_prefix(b"HTTP/1.")?.get(1..6)? {
        b" 400 " => Some(&BAD_HEAD),
        b" 431 " => Some(&HEAD_TOO_LARGE),
        _ => None,
    }
}

/// The connection ends with it: nobody can tell where the next request begins.
fn whole(problem: &Problem) -> Vec<u8> {
    let body = problem.to_json();
    let (status, length) = (problem.status, body.len());
    let mut answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {KIND}\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n"
    )
    .into_bytes();
    answer.extend(body);
    answer
}
