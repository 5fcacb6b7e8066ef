//! `[[auth.key]]`: the hashes of the keys that are let in, and what each may do.
//!
//! Found by the first bytes of the hash, then compared whole in constant time. Core's reader has
//! refused every mistake in the list already. Must not make up what a key does not say.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::super::roles::ROLES;
use super::{Caller, hash};

/// The longest name of a key or namespace.
const NAME_BYTES_MAX: usize = 64;

/// The keys that are let in.
#[derive(Default)]
pub struct Keys {
    held: HashMap<u64, Held>,
}

struct Held {
    hash: blake3::Hash,
    caller: Arc<Caller>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    hash: String,
    role: String,
    namespace: Option<String>,
    #[serde(default)]
    fix: BTreeMap<String, String>,
}

impl Keys {
    /// The keys of `[auth]`.
    pub fn read(section: Option<&toml::Table>) -> Result<Self> {
        let Some(section) = section else { return Ok(Self::default()) };
        let Some(list) = section.get("key") else { return Ok(Self::default()) };
        let list = list.as_array().context("[auth] key: write tables such as [[auth.key]]")?;
        let mut keys = Self::default();
        for (place, value) in list.iter().enumerate() {
            let shown = || format!("[[auth.key]] number {}", place + 1);
            let written: Written = value.clone().try_into().with_context(shown)?;
            keys.hold(written).with_context(shown)?;
        }
        Ok(keys)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whose key this is.
    pub fn find(&self, given: &[u8]) -> Option<Arc<Caller>> {
        let hash = hash::hash(given);
        let held = self.held.get(&first(&hash))?;
        // Equality of these hashes takes the same time wherever they differ.
        (held.hash == hash).then(|| Arc::clone(&held.caller))
    }

    fn hold(&mut self, written: Written) -> Result<()> {
        let role = ROLES.iter().find(|(name, _)| *name == written.role);
        let (_, role) =
            role.with_context(|| format!("role = {:?}: write read, check or admin", written.role))?;
        let hash = hash::read(&written.hash).context("hash: write what `catraca keygen` prints")?;
        let fix = written.fix.into_iter().collect();
        let (name, namespace) = (written.name, written.namespace);
        let caller = Arc::new(Caller { name, role: *role, namespace, fix });
        let twice = self.held.insert(first(&hash), Held { hash, caller });
        ensure!(twice.is_none(), "hash: another key has the same; make one for each caller");
        Ok(())
    }
}

/// Whether `/metrics` is for everybody.
pub fn metrics_open(section: Option<&toml::Table>) -> Result<bool> {
    match section.and_then(|section| section.get("metrics")) {
        None => Ok(false),
        Some(value) => match value.as_str() {
            Some("open") => Ok(true),
            Some("read") => Ok(false),
            _ => anyhow::bail!(
                "[auth] metrics = {value}: write \"open\", or \"read\" for keys that may"
            ),
        },
    }
}

/// Refuses a name that could not be told apart in a log.
pub fn name(field: &str, text: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    ensure!(
        !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.bytes().all(plain),
        "{field} = {text:?}: write 1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` or `.`"
    );
    Ok(())
}

/// The first bytes of a hash, by which it is looked up.
fn first(hash: &blake3::Hash) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}
