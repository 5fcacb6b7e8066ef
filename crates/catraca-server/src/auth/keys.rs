//! The API keys of `[[auth.key]]`: the hash of each, and the caller that it authenticates.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Result, ensure};

use super::{Caller, Role, hash};

/// Maximum length of the name of a key or a namespace.
const NAME_BYTES_MAX: usize = 64;

/// The valid keys, by the first eight bytes of their hashes.
#[derive(Default)]
pub struct Keys {
    by_prefix: HashMap<u64, StoredKey>,
}

struct StoredKey {
    hash: blake3::Hash,
    caller: Arc<Caller>,
}

/// An `[[auth.key]]` of the catalog, as the reader of the section has validated it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its name in the audit log.
    pub name: String,
    /// Its hash; no two keys have the same.
    pub hash: blake3::Hash,
    /// What it may do.
    pub role: Role,
    /// Its only namespace, if it is bound to one.
    pub namespace: Option<String>,
    /// Attributes that it fixes.
    pub fix: Vec<(String, String)>,
}

impl Keys {
    /// A table of these keys.
    pub fn new(keys: &[ApiKey]) -> Self {
        let stored = |key: &ApiKey| {
            let ApiKey { name, hash, role, namespace, fix } = key.clone();
            let caller = Arc::new(Caller { name, role, namespace, fix });
            (hash_prefix(&hash), StoredKey { hash, caller })
        };
        Self { by_prefix: keys.iter().map(stored).collect() }
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }

    /// The caller whose key this is.
    pub fn find(&self, key: &[u8]) -> Option<Arc<Caller>> {
        let hash = hash::hash(key);
        let stored = self.by_prefix.get(&hash_prefix(&hash))?;
        // `blake3::Hash` compares in constant time, so the time reveals nothing about the hash.
        (stored.hash == hash).then(|| Arc::clone(&stored.caller))
    }
}

/// Refuses a name with characters that would be ambiguous in a log line.
pub fn check_plain_name(field: &str, text: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    ensure!(
        !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.bytes().all(plain),
        "{field} = {text:?}: write 1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` or `.`"
    );
    Ok(())
}

/// The first eight bytes of a hash, which are the key of the map.
fn hash_prefix(hash: &blake3::Hash) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}
