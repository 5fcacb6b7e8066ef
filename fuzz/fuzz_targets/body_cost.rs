//! The cost in the body of an outcome.

#![no_main]

#[path = "../checks/body_cost.rs"]
mod body_cost;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body_cost::check(data));
