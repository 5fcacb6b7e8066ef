//! Encryption of tickets with XChaCha20-Poly1305 (docs/adr/0004).

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use data_encoding::BASE64URL_NOPAD;

/// A cipher with one key.
#[derive(Clone)]
pub(super) struct Cipher(XChaCha20Poly1305);

impl Cipher {
    pub fn new(key: &[u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(key.into()))
    }

    /// Encrypts a message; the namespace is authenticated with it.
    pub fn encrypt(&self, id: u128, plain: &[u8], namespace: &str) -> Vec<u8> {
        let payload = Payload { msg: plain, aad: namespace.as_bytes() };
        // Fails only for messages far above the size limit. The token is then empty after the id,
        // which `decrypt` refuses.
        self.0.encrypt(&nonce(id), payload).unwrap_or_default()
    }

    /// Decrypts a message; `None` if it was not encrypted with this key, id and namespace.
    pub fn decrypt(&self, id: u128, sealed: &[u8], namespace: &str) -> Option<Vec<u8>> {
        let payload = Payload { msg: sealed, aad: namespace.as_bytes() };
        self.0.decrypt(&nonce(id), payload).ok()
    }
}

impl Cipher {
    /// A token as text.
    pub fn to_text(token: &[u8]) -> String {
        BASE64URL_NOPAD.encode(token)
    }

    /// The token of a text, if it is one.
    pub fn from_text(text: &str) -> Option<Vec<u8>> {
        BASE64URL_NOPAD.decode(text.as_bytes()).ok()
    }
}

fn nonce(id: u128) -> XNonce {
    let mut nonce = [0; 24];
    // The other eight bytes are zero: the id alone is unique.
    nonce[..16].copy_from_slice(&id.to_le_bytes());
    nonce.into()
}
