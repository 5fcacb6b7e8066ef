//! The client's address in forwarding headers.

#![no_main]

#[path = "../checks/forwarded_headers.rs"]
mod forwarded_headers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| forwarded_headers::check(data));
