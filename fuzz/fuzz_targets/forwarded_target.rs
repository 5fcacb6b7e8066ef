//! The target that an upstream gets.

#![no_main]

#[path = "../checks/forwarded_target.rs"]
mod check;
#[path = "../../crates/catraca-server/src/proxy/forwarded_target.rs"]
mod forwarded_target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    check::check(data, forwarded_target::forwarded_target);
});
