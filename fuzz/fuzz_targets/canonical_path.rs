//! The canonical form of a path.

#![no_main]

#[path = "../checks/canonical_path.rs"]
mod canonical_path;

libfuzzer_sys::fuzz_target!(|data: &[u8]| canonical_path::check(data));
