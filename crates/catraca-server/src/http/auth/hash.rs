//! Keys and their hashes: a key is 256 random bits in letters, and only its hash is ever kept.
//!
//! Nobody can guess such a key, so a fast hash is enough; a slow one would only slow every request
//! down. Must not be used for anything that a person chose.

use anyhow::{Context, Result};
use data_encoding::BASE32_NOPAD;

/// What every key begins with, so that scanners for leaked secrets find it.
const PREFIX: &str = "catraca_";
/// What keeps these hashes apart from any other use of the same function.
const CONTEXT: &str = "catraca 2026 api key";
/// What a written hash begins with.
const FUNCTION: &str = "blake3:";

/// A new key.
pub fn new_key() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("the system gives no random bytes")?;
    Ok(format!("{PREFIX}{}", BASE32_NOPAD.encode(&bytes).to_ascii_lowercase()))
}

/// The hash of whatever was given as a key.
pub fn hash(key: &[u8]) -> blake3::Hash {
    blake3::Hash::from_bytes(blake3::derive_key(CONTEXT, key))
}

/// A hash as it is written in a catalog.
pub fn write(hash: &blake3::Hash) -> String {
    format!("{FUNCTION}{}", hash.to_hex())
}

/// A hash that was written in a catalog.
pub fn read(text: &str) -> Option<blake3::Hash> {
    blake3::Hash::from_hex(text.strip_prefix(FUNCTION)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_their_hash_is_read_back() {
        let (one, other) = (new_key().unwrap(), new_key().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), PREFIX.len() + 52);
        let hashed = hash(one.as_bytes());
        assert_eq!(read(&write(&hashed)), Some(hashed));
        assert_ne!(hashed, hash(other.as_bytes()));
        assert!(!write(&hashed).contains(&one));
        for wrong in ["", "blake3:", "blake3:zz", &hashed.to_hex()[..], "sha256:00"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
