//! Refuses requests that an upstream could read in another way than this server.
//!
//! hyper refuses most of them before: a broken head, two different lengths, an unknown transfer
//! coding, folded headers.

use hyper::http::request::Parts;
use hyper::http::{HeaderMap, Method, Version, header};

use crate::http_wire::problem::{Problem, wrong_method};

/// Checks the head of a request, and returns its path with the query.
pub fn check(head: &Parts, is_length_ambiguous: bool) -> Result<String, Problem> {
    if is_length_ambiguous {
        return Err(ambiguous_length());
    }
    if head.method == Method::CONNECT {
        return Err(wrong_method(&head.method, "a proxied request"));
    }
    check_host(head)?;
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    Ok(target.to_owned())
}

/// A request has one host: HTTP/1.1 requires the header, and a host in the target must agree.
fn check_host(head: &Parts) -> Result<(), Problem> {
    let mut lines = head.headers.get_all(header::HOST).iter();
    let stated = lines.next();
    let in_target = head.uri.authority().map(|authority| authority.as_str());
    let agrees = match (stated, in_target) {
        (Some(stated), Some(target)) => stated.as_bytes().eq_ignore_ascii_case(target.as_bytes()),
        (Some(stated), None) => stated.to_str().is_ok_and(is_authority),
        (None, _) => head.version != Version::HTTP_11,
    };
    if agrees && lines.next().is_none() { Ok(()) } else { Err(ambiguous_host()) }
}

/// A host with an optional port, or nothing.
fn is_authority(text: &str) -> bool {
    let is_host_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:[]%!$&'()*+,;=".contains(&byte);
    text.bytes().all(is_host_byte)
}

/// Whether a problem leaves it open where the next request of the connection begins.
pub fn must_close(problem: &Problem) -> bool {
    matches!(problem.code, "ambiguous-length" | "ambiguous-host" | "broken-body" | "body-timeout")
}

/// The protocol that a client asks to switch to, if it asks for one.
pub fn wanted_upgrade(headers: &HeaderMap) -> Option<&header::HeaderValue> {
    let lines = headers.get_all(header::CONNECTION).iter();
    let mut names = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    let asks = names.any(|name| name.trim().eq_ignore_ascii_case("upgrade"));
    headers.get(header::UPGRADE).filter(|_| asks)
}

fn ambiguous_length() -> Problem {
    Problem::bad(
        "ambiguous-length",
        "the request states its length twice, with Content-Length and Transfer-Encoding or with \
         two lines of Content-Length; send one of them",
    )
}

fn ambiguous_host() -> Problem {
    Problem::bad(
        "ambiguous-host",
        "a request has one Host, which is that of its target if the target is a URL; send one line \
         of it",
    )
}
