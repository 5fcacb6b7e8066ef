//! The costs in an event stream.

#![no_main]

#[path = "../checks/event_stream.rs"]
mod event_stream;

libfuzzer_sys::fuzz_target!(|data: &[u8]| event_stream::check(data));
