//! Lease ids: the secret of 128 bits that proves a lease, and its digest.
//!
//! Only the digest is stored. The secret must not appear in logs, hence the `Debug` below.

use std::fmt;

use data_encoding::HEXLOWER;

/// The secret with which a holder renews, releases or confirms its lease.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LeaseId([u8; 16]);

/// The digest of a lease id, under which the lease is stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseKey([u8; 16]);

impl LeaseId {
    /// A lease id from bytes that cannot be guessed: random, or a keyed digest of the request.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Parses a lease id; `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = HEXLOWER.decode(text.as_bytes()).ok()?;
        bytes.try_into().ok().map(Self)
    }

    /// The text that the holder is given, once.
    pub fn reveal(self) -> String {
        HEXLOWER.encode(&self.0)
    }

    /// The digest to store. The id cannot be guessed, so its digest needs no secret.
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
    /// A key from its bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes of the key.
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
        assert_eq!(format!("{id:?}"), "LeaseId(..)");
        for wrong in ["", "07", &text.to_uppercase().replace('0', "G"), &format!("{text}00")] {
            assert_eq!(LeaseId::parse(wrong), None, "{wrong}");
        }
        assert_ne!(id.key(), LeaseId::from_bytes([8; 16]).key());
    }

    #[test]
    fn the_bytes_of_a_key_are_those_that_it_was_made_of() {
        let bytes = LeaseId::from_bytes([7; 16]).key().to_bytes();
        assert_eq!(LeaseKey::from_bytes(bytes), LeaseId::from_bytes([7; 16]).key());
        assert_eq!(LeaseKey::from_bytes([9; 16]).to_bytes(), [9; 16]);
    }
}
