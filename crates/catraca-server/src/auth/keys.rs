//! The API keys of `[[auth.key]]`: the hash of each, and the caller that it authenticates.
//!
//! The catalog's parser in core has validated the list already; the errors here repeat its rules.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::role::ROLES;
use super::{Caller, hash};

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

/// An `[[auth.key]]` of the catalog.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyConfig {
    name: String,
    hash: String,
    role: String,
    namespace: Option<String>,
    #[serde(default)]
    fix: BTreeMap<String, String>,
}

impl Keys {
    /// Reads the keys of `[auth]`.
    pub fn read(section: Option<&toml::Table>) -> Result<Self> {
        let Some(section) = section else { return Ok(Self::default()) };
        let Some(list) = section.get("key") else { return Ok(Self::default()) };
        let list = list.as_array().context("[auth] key: write tables such as [[auth.key]]")?;
        let mut keys = Self::default();
        for (index, value) in list.iter().enumerate() {
            let which = || format!("[[auth.key]] number {}", index + 1);
            let config: KeyConfig = value.clone().try_into().with_context(which)?;
            keys.insert(config).with_context(which)?;
        }
        Ok(keys)
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

    /// Adds a key; a hash that is already there is refused.
    fn insert(&mut self, config: KeyConfig) -> Result<()> {
        let role = ROLES.iter().find(|(name, _)| *name == config.role);
        let (_, role) =
            role.with_context(|| format!("role = {:?}: write read, check or admin", config.role))?;
        let hash = hash::read(&config.hash).context("hash: write what `catraca keygen` prints")?;
        let fix = config.fix.into_iter().collect();
        let caller = Caller { name: config.name, role: *role, namespace: config.namespace, fix };
        let caller = Arc::new(caller);
        let previous = self.by_prefix.insert(hash_prefix(&hash), StoredKey { hash, caller });
        ensure!(
            previous.is_none(),
            "hash: another key has the same hash; make one key for each caller"
        );
        Ok(())
    }
}

/// Whether `/metrics` needs no key.
pub fn metrics_open(section: Option<&toml::Table>) -> Result<bool> {
    match section.and_then(|section| section.get("metrics")) {
        None => Ok(false),
        Some(value) => match value.as_str() {
            Some("open") => Ok(true),
            Some("read") => Ok(false),
            _ => anyhow::bail!(
                "[auth] metrics = {value}: write \"open\" for every client, or \"read\" for keys"
            ),
        },
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
