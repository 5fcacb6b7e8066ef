//! The proof of a lease: 128 bits that nobody can guess, of which only a digest is kept.
//!
//! Must not print the proof.

use std::fmt;

use data_encoding::HEXLOWER;

/// The secret that its holder shows to renew, release or confirm.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LeaseId([u8; 16]);

/// Its digest: what is kept, and what the lease is found by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseKey([u8; 16]);

impl LeaseId {
    /// A proof of bytes that nobody can guess.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The proof that a text shows, if it can be one.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = HEXLOWER.decode(text.as_bytes()).ok()?;
        bytes.try_into().ok().map(Self)
    }

    /// The text that its holder is given, once.
    pub fn reveal(self) -> String {
        HEXLOWER.encode(&self.0)
    }

    /// What is kept of it. The proof has all its bits by chance, so the digest needs no secret.
    pub fn key(self) -> LeaseKey {
        let digest = blake3::derive_key("catraca 2026 lease key", &self.0);
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        LeaseKey(half)
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseId(..)")
    }
}

impl LeaseKey {
    /// A key of its bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Debug for LeaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0[..4]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// covers: B-64
    #[test]
    fn a_proof_is_read_back_and_never_printed() {
        let id = LeaseId::from_bytes([7; 16]);
        let text = id.reveal();
        assert_eq!(LeaseId::parse(&text), Some(id));
        assert!(!format!("{id:?}{:?}", id.key()).contains(&text[..8]));
        for wrong in ["", "07", &text.to_uppercase().replace('0', "G"), &format!("{text}00")] {
            assert_eq!(LeaseId::parse(wrong), None, "{wrong}");
        }
        assert_ne!(id.key(), LeaseId::from_bytes([8; 16]).key());
    }
}
