//! The trailers of requests.

#![no_main]
// The modules of the server have more than the target calls.
#![allow(dead_code)]

#[path = "../checks/request_trailers.rs"]
mod check;
#[path = "../../crates/catraca-server/src/proxy/request_trailers.rs"]
mod request_trailers;
#[path = "../../crates/catraca-server/src/proxy/spoofed_headers.rs"]
mod spoofed_headers;

use catraca::core::catalog::Route;
use hyper::body::Frame;
use hyper::http::HeaderMap;
use request_trailers::TrailerRule;

fn left(headers: &HeaderMap, route: &Route, address: &str, trailers: HeaderMap) -> HeaderMap {
    let rule = TrailerRule::for_request(headers, route, Some(address));
    let part = TrailerRule::clean_part(rule.as_ref(), Frame::trailers(trailers));
    part.and_then(|part| part.into_trailers().ok()).unwrap_or_default()
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data, left));
