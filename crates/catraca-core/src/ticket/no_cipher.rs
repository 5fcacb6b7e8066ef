//! The cipher of a build without the feature `settle`, in which no catalog has a policy that needs
//! tickets: nothing is encrypted, and no ticket is accepted.

/// A cipher that accepts nothing.
#[derive(Clone)]
pub(super) struct DisabledCipher;

impl DisabledCipher {
    pub fn new(_key: &[u8; 32]) -> Self {
        Self
    }

    pub fn encrypt(&self, _id: u128, _plain: &[u8], _namespace: &str) -> Vec<u8> {
        Vec::new()
    }

    pub fn decrypt(&self, _id: u128, _sealed: &[u8], _namespace: &str) -> Option<Vec<u8>> {
        None
    }

    pub fn to_text(_token: &[u8]) -> String {
        String::new()
    }

    pub fn from_text(_text: &str) -> Option<Vec<u8>> {
        None
    }
}
