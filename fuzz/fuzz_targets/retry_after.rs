//! The `Retry-After` of an upstream.

#![no_main]

#[path = "../checks/retry_after.rs"]
mod retry_after;

libfuzzer_sys::fuzz_target!(|data: &[u8]| retry_after::check(data));
