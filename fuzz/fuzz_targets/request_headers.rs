//! The headers of requests to upstreams.

#![no_main]
// The module of the server has more than the target calls.
#![allow(dead_code)]

#[path = "../checks/request_headers.rs"]
mod request_headers;
#[path = "../../crates/catraca-server/src/proxy/spoofed_headers.rs"]
mod spoofed_headers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    request_headers::check(data, spoofed_headers::remove);
});
