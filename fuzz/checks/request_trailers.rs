//! No trailer passes that a server could take for a header that was checked.

use catraca::core::catalog::{Catalog, Route};
use hyper::http::{HeaderMap, HeaderName, HeaderValue};

const CATALOG: &str = "[policy.site]\nby = ['user', 'device']\nwindow = '1 per 1m'\n\
    [[route]]\nmatch = '/**'\ngate = 'site'\n\
    set = { user = 'header:x-user', device = 'header:X_Device' }\n";
/// Written with `-`.
const COUNTED: [&str; 20] = [
    "authorization",
    "catraca-ticket",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "true-client-ip",
    "upgrade",
    "x-device",
    "x-edge-ip",
    "x-forwarded-for",
    "x-original-url",
    "x-real-ip",
    "x-request-id",
    "x-user",
];

/// The input has the type of the request in its first line, and the names of trailers in the
/// others. `left` returns the trailers that pass; it is called with the header that states an
/// address.
pub fn check(data: &[u8], left: impl Fn(&HeaderMap, &Route, &str, HeaderMap) -> HeaderMap) {
    let catalog = Catalog::parse(CATALOG).expect("the catalog");
    let mut lines = data.split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let mut headers = HeaderMap::new();
    if let Ok(content_type) = HeaderValue::from_bytes(first) {
        headers.insert("content-type", content_type);
    }
    let mut trailers = HeaderMap::new();
    for line in lines {
        if let Ok(name) = HeaderName::from_bytes(line) {
            trailers.append(name, HeaderValue::from_static("1"));
        }
    }
    let passed = left(&headers, &catalog.routes[0], "X-Edge-IP", trailers.clone());
    let is_grpc = first == b"application/grpc"
        || [&b"application/grpc+"[..], b"application/grpc;"]
            .iter()
            .any(|own| first.starts_with(own));
    assert!(is_grpc || passed.is_empty(), "{passed:?}");
    for name in passed.keys().map(HeaderName::as_str) {
        assert!(trailers.contains_key(name), "{name}");
        assert!(!COUNTED.contains(&name.replace('_', "-").as_str()), "{name}");
    }
}
