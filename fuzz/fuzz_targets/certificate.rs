//! The certificates of clients.

#![no_main]

#[path = "../checks/certificate.rs"]
mod certificate;
#[path = "../../crates/catraca-server/src/client_certificate.rs"]
mod client_certificate;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    certificate::check(data, client_certificate::parse_certificate);
});
