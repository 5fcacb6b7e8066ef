//! API keys and their hashes: a key is 256 random bits, and only its hash is stored.
//!
//! Such a key cannot be guessed, so a fast hash is enough; a slow one would cost every request
//! milliseconds. Must not be used for passwords, which can be guessed.

use anyhow::{Context, Result};
use data_encoding::BASE32_NOPAD;

/// Prefix of every key, by which scanners find leaked ones.
pub const KEY_PREFIX: &str = "catraca_";
/// Separates these hashes from every other use of the same hash function.
const CONTEXT: &str = "catraca 2026 api key";
/// Prefix of a hash in the catalog.
pub const HASH_PREFIX: &str = "blake3:";

/// Makes a new random key.
pub fn new_key() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("the operating system returned no random bytes")?;
    Ok(format!("{KEY_PREFIX}{}", BASE32_NOPAD.encode(&bytes).to_ascii_lowercase()))
}

/// Hashes the bytes that a request presents as its key.
pub fn hash(key: &[u8]) -> blake3::Hash {
    blake3::Hash::from_bytes(blake3::derive_key(CONTEXT, key))
}

/// Formats a hash for the catalog.
pub fn write(hash: &blake3::Hash) -> String {
    format!("{HASH_PREFIX}{}", hash.to_hex())
}

/// Parses a hash of the catalog.
pub fn read(text: &str) -> Option<blake3::Hash> {
    blake3::Hash::from_hex(text.strip_prefix(HASH_PREFIX)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_their_hash_is_read_back() {
        let one = new_key().unwrap();
        let other = new_key().unwrap();
        assert_ne!(one, other);
        assert_eq!(one.len(), KEY_PREFIX.len() + 52);
        let hashed = hash(one.as_bytes());
        assert_eq!(read(&write(&hashed)), Some(hashed));
        assert_ne!(hashed, hash(other.as_bytes()));
        assert!(!write(&hashed).contains(&one));
        for wrong in ["", "blake3:", "blake3:zz", &hashed.to_hex()[..], "sha256:00"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
