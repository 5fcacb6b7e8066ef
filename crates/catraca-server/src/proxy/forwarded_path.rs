//! The path and query that an upstream gets: those that the route was matched against.
//!
//! A route matches the canonical path, in which `//`, `/./` and escapes of plain letters are gone.
//! If the upstream got the client's spelling, it could read another path than the one that was
//! limited.

use catraca::core::route::{AmbiguousPath, CanonicalPath};
use hyper::http::Uri;
use hyper::http::uri::PathAndQuery;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::admission;
use crate::http_wire::problem::Problem;

/// The characters that need no escape in a segment (RFC 3986, `pchar`), without `;`, after which
/// some servers read parameters.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// The target of the request to an upstream. The query is the client's, byte for byte, and a slash
/// at the end of its path stays.
pub fn forwarded_uri(path: &CanonicalPath, target: &PathAndQuery) -> Result<Uri, Problem> {
    let forwarded = forwarded_target(path, target.as_str());
    if forwarded == target.as_str() {
        return Ok(Uri::from(target.clone()));
    }
    forwarded.parse().map_err(|_| admission::ambiguous_path(AmbiguousPath::NotUtf8))
}

fn forwarded_target(path: &CanonicalPath, target: &str) -> String {
    let (sent_path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let mut forwarded = String::with_capacity(target.len() + 1);
    for segment in &path.segments {
        forwarded.push('/');
        forwarded.extend(utf8_percent_encode(segment, SEGMENT));
    }
    if path.segments.is_empty() || sent_path.ends_with('/') {
        forwarded.push('/');
    }
    if let Some(query) = query {
        forwarded.push('?');
        forwarded.push_str(query);
    }
    forwarded
}

#[cfg(test)]
mod tests {
    use catraca::core::catalog::Network;

    use super::*;

    #[test]
    fn the_upstream_gets_the_path_that_was_matched() {
        for (sent, forwarded) in [
            ("/api/login", "/api/login"),
            ("/", "/"),
            ("/api//./login/?next=/a/../b", "/api/login/?next=/a/../b"),
            ("/%61pi/%6cogin;x=1?a=%2f", "/api/login?a=%2f"),
            ("/caf%c3%a9/100%25/a%3fb", "/caf%C3%A9/100%25/a%3Fb"),
        ] {
            let path = CanonicalPath::canonical(sent, &Network::default()).unwrap();
            assert_eq!(forwarded_target(&path, sent), forwarded, "{sent}");
        }
    }
}
