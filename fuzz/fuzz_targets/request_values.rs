//! What a route reads from a request.

#![no_main]

#[path = "../checks/request_values.rs"]
mod request_values;

libfuzzer_sys::fuzz_target!(|data: &[u8]| request_values::check(data));
