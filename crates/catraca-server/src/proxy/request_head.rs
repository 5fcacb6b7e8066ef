//! Refuses requests that an upstream could read in another way than this server.
//!
//! hyper refuses most of them before: a broken head, two different lengths, an unknown transfer
//! coding, folded headers.

use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::http::{HeaderMap, HeaderValue, Method, Version, header};

use crate::http_wire::problem::{Problem, wrong_method};

/// Protocols that carry HTTP requests, which would pass unchecked after a switch to them.
const UNCHECKED_PROTOCOLS: [&str; 4] = ["h2c", "h2", "http", "tls"];

/// Checks the head of a request, and returns its path with the query.
pub fn check(head: &Parts, is_length_ambiguous: bool) -> Result<PathAndQuery, Problem> {
    // HTTP/2 allows several equal lines, and an upstream of HTTP/1.1 would get all of them.
    let states_twice = head.headers.get_all(header::CONTENT_LENGTH).iter().nth(1).is_some();
    let is_dropped = is_named_by_connection(&head.headers, "content-length");
    if is_length_ambiguous || states_twice || is_dropped {
        return Err(ambiguous_length());
    }
    if head.method == Method::CONNECT {
        return Err(wrong_method(&head.method, "a proxied request"));
    }
    check_host(head)?;
    let target = head.uri.path_and_query().cloned();
    Ok(target.unwrap_or(PathAndQuery::from_static("/")))
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
    let is_valid = in_target.is_none_or(is_authority);
    let is_kept = !is_named_by_connection(&head.headers, "host");
    if agrees && is_valid && is_kept && lines.next().is_none() {
        Ok(())
    } else {
        Err(ambiguous_host())
    }
}

/// Whether `Connection` names a header, so that it would not be passed on.
fn is_named_by_connection(headers: &HeaderMap, name: &str) -> bool {
    let lines = headers.get_all(header::CONNECTION).iter();
    let mut names = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    names.any(|own| own.trim().eq_ignore_ascii_case(name))
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

/// The protocol that a client asks to switch to, if it asks for one that is not HTTP. A list of
/// protocols is not passed on: the upstream could choose any of them.
pub fn wanted_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut lines = headers.get_all(header::UPGRADE).iter();
    let protocol = lines.next().filter(|_| is_named_by_connection(headers, "upgrade"))?;
    let text = protocol.to_str().ok()?;
    let name = text.split('/').next().unwrap_or_default();
    let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/+".contains(&byte);
    let is_one = !name.is_empty() && text.bytes().all(is_token_byte) && lines.next().is_none();
    let is_checked = !UNCHECKED_PROTOCOLS.iter().any(|own| name.eq_ignore_ascii_case(own));
    (is_one && is_checked).then(|| protocol.clone())
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

#[cfg(test)]
#[path = "../../../../fuzz/checks/request_head.rs"]
mod request_head_check;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_that_carry_requests_are_not_switched_to() {
        let wanted = |connection: &'static str, lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONNECTION, HeaderValue::from_static(connection));
            for line in lines {
                headers.append(header::UPGRADE, HeaderValue::from_static(line));
            }
            wanted_upgrade(&headers)
        };
        for protocol in ["websocket", "WebSocket", "foo/2"] {
            let expected = Some(HeaderValue::from_static(protocol));
            assert_eq!(wanted("keep-alive, Upgrade", &[protocol]), expected);
        }
        for protocol in [
            "h2c",
            "H2C",
            "h2",
            "HTTP/2.0",
            "http",
            "TLS/1.2",
            "websocket, h2c",
            "h2c,x",
            "",
            "a b",
        ] {
            assert_eq!(wanted("upgrade", &[protocol]), None, "{protocol}");
        }
        assert_eq!(wanted("upgrade", &["websocket", "h2c"]), None);
        assert_eq!(wanted("close", &["websocket"]), None);
    }

    /// Runs the check of the fuzz target with the inputs in `fuzz/corpus`.
    #[test]
    fn inputs_of_request_head() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/request_head");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let input = std::fs::read(entry.unwrap().path()).unwrap();
            let passes = |head: &Parts| check(head, false).is_ok();
            request_head_check::check(&input, passes, wanted_upgrade);
            count += 1;
        }
        assert!(count > 5, "{count}");
    }
}
