//! Verifies the JSON Web Tokens of clients, whose claims routes read as `jwt:CLAIM`.
//!
//! ring does all cryptography. A key decides which algorithms may be used with it, never the token:
//! a public key is no secret of an HMAC. Must not show a token or a claim in an error.

mod algorithm;
mod error;
mod key_set;
#[cfg(test)]
mod tests;
mod token;
mod verifier;

pub use algorithm::Algorithm;
pub use error::JwtError;
pub use key_set::KeySet;
pub use verifier::JwtVerifier;
