//! The tokens of clients.

#![no_main]
// These modules of the server have more than the target calls.
#![allow(dead_code)]

#[path = "../../crates/catraca-server/src/jwt/algorithm.rs"]
mod algorithm;
#[path = "../../crates/catraca-server/src/jwt/error.rs"]
mod error;
#[path = "../checks/jwt.rs"]
mod jwt;
#[path = "../../crates/catraca-server/src/jwt/key_set.rs"]
mod key_set;
#[path = "../../crates/catraca-server/src/regular_file.rs"]
mod regular_file;
#[path = "../../crates/catraca-server/src/jwt/token.rs"]
mod token;
#[path = "../../crates/catraca-server/src/jwt/verifier.rs"]
mod verifier;

use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use key_set::KeySet;
use verifier::JwtVerifier;

static VERIFIER: LazyLock<JwtVerifier> = LazyLock::new(|| JwtVerifier {
    keys: Some(KeySet::of_secret(jwt::SECRET).expect("a secret that is long enough")),
    algorithms: Vec::new(),
    issuer: None,
    audiences: Vec::new(),
    leeway: Duration::ZERO,
});

fn is_accepted(token: &str) -> bool {
    VERIFIER.verify(token, UNIX_EPOCH + Duration::from_secs(jwt::NOW)).is_ok()
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    jwt::check(data, is_accepted);
});
