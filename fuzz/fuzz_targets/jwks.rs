//! Key sets of issuers.

#![no_main]
// These modules of the server have more than the target calls.
#![allow(dead_code)]

#[path = "../../crates/catraca-server/src/jwt/algorithm.rs"]
mod algorithm;
#[path = "../../crates/catraca-server/src/jwt/error.rs"]
mod error;
#[path = "../checks/jwks.rs"]
mod jwks;
#[path = "../../crates/catraca-server/src/jwt/key_set.rs"]
mod key_set;
#[path = "../../crates/catraca-server/src/regular_file.rs"]
mod regular_file;
#[path = "../../crates/catraca-server/src/jwt/token.rs"]
mod token;
#[path = "../../crates/catraca-server/src/jwt/verifier.rs"]
mod verifier;

use std::time::{Duration, UNIX_EPOCH};

use key_set::KeySet;
use verifier::JwtVerifier;

fn is_accepted(set: &str, token: &str) -> Option<bool> {
    let verifier = JwtVerifier {
        keys: Some(KeySet::parse_jwks(set).ok()?),
        algorithms: Vec::new(),
        issuer: None,
        audiences: Vec::new(),
        leeway: Duration::ZERO,
    };
    Some(verifier.verify(token, UNIX_EPOCH + Duration::from_secs(1_800_000_000)).is_ok())
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    jwks::check(data, is_accepted);
});
