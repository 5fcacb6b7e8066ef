//! Messages between nodes, encrypted like tickets: the store that carries them must not learn the
//! values in them.

use super::Cipher;
use crate::digest::Secret;

/// Authenticated with every message, so that no ticket passes for one.
const CONTEXT: &str = "node message";

/// Encrypts and decrypts messages between the nodes that share a secret.
#[derive(Clone)]
pub struct MessageSealer {
    cipher: Cipher,
    /// The ciphers of older secrets, whose messages are still read.
    older: Vec<Cipher>,
}

impl std::fmt::Debug for MessageSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MessageSealer(..)")
    }
}

impl MessageSealer {
    /// A sealer that uses the engine's secret.
    pub fn new(secret: &Secret) -> Self {
        let keys = secret.derive_all("catraca 1 node message");
        let older = keys[1..].iter().map(Cipher::new).collect();
        Self { cipher: Cipher::new(&keys[0]), older }
    }

    /// Encrypts a message. The id must never repeat under one secret: random bytes.
    pub fn seal(&self, id: u128, plain: &[u8]) -> Vec<u8> {
        let mut sealed = id.to_le_bytes().to_vec();
        sealed.extend(self.cipher.encrypt(id, plain, CONTEXT));
        sealed
    }

    /// Decrypts a message; `None` if it is not one of this secret.
    pub fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (id, sealed) = sealed.split_first_chunk::<16>()?;
        let id = u128::from_le_bytes(*id);
        let mut ciphers = std::iter::once(&self.cipher).chain(&self.older);
        ciphers.find_map(|cipher| cipher.decrypt(id, sealed, CONTEXT))
    }
}

#[cfg(all(test, feature = "settle"))]
mod tests {
    use super::*;

    #[test]
    fn a_message_opens_under_its_secret_alone_also_after_a_rotation() {
        let old = Secret::from_bytes([1; 32]);
        let sealed = MessageSealer::new(&old).seal(7, b"198.51.100.7");
        assert!(!sealed.windows(4).any(|four| four == b"198."));
        let rotated = Secret::from_bytes([2; 32]).with_older(old);
        assert_eq!(MessageSealer::new(&rotated).open(&sealed).unwrap(), b"198.51.100.7");
        let other = MessageSealer::new(&Secret::from_bytes([3; 32]));
        assert_eq!(other.open(&sealed), None);
        assert_eq!(other.open(b"short"), None);
    }
}
