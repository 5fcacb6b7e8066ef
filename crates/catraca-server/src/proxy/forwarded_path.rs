//! The path and query that an upstream gets: those that the route was matched against.
//!
//! A route matches the canonical path, in which `//`, `/./` and escapes of plain letters are gone.
//! If the upstream got the client's spelling, it could read another path than the one that was
//! limited.

use catraca::core::route::{AmbiguousPath, CanonicalPath};
use hyper::http::Uri;
use hyper::http::uri::PathAndQuery;

use super::admission;
use super::forwarded_target::forwarded_target;
use crate::http_wire::problem::Problem;

/// The target of the request to an upstream. The query is the client's, byte for byte, and a slash
/// at the end of its path stays.
pub fn forwarded_uri(path: &CanonicalPath, target: &PathAndQuery) -> Result<Uri, Problem> {
    let forwarded = forwarded_target(path, target.as_str());
    if forwarded == target.as_str() {
        return Ok(Uri::from(target.clone()));
    }
    forwarded.parse().map_err(|_| admission::ambiguous_path(AmbiguousPath::NotUtf8))
}
