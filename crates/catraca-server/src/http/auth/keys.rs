//! `[[auth.key]]`: the hashes of the keys that are let in, and what each may do.
//!
//! Found by the first bytes of the hash, then compared whole in constant time. Must not accept a
//! list with a mistake in it: a key that means something else than it says is a hole.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use catraca::core::request::VALUE_BYTES_MAX;
use serde::Deserialize;

use super::super::roles::ROLES;
use super::{Caller, hash};

/// The most keys.
const KEYS_MAX: usize = 10_000;
/// The longest name of a key or namespace.
const NAME_BYTES_MAX: usize = 64;
/// The most attributes that a key fixes.
const FIXED_MAX: usize = 8;

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
        ensure!(list.len() <= KEYS_MAX, "[[auth.key]]: there may be {KEYS_MAX} keys");
        let mut keys = Self::default();
        let mut names = BTreeMap::new();
        for (place, value) in list.iter().enumerate() {
            let shown = || format!("[[auth.key]] number {}", place + 1);
            let written: Written = value.clone().try_into().with_context(shown)?;
            if let Some(first) = names.insert(written.name.clone(), place) {
                bail!("{}: number {} is called {:?} too", shown(), first + 1, written.name);
            }
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
        name("name", &written.name)?;
        written.namespace.as_deref().map_or(Ok(()), |text| name("namespace", text))?;
        let role = ROLES.iter().find(|(name, _)| *name == written.role);
        let (_, role) =
            role.with_context(|| format!("role = {:?}: write read, check or admin", written.role))?;
        let hash = hash::read(&written.hash).with_context(|| {
            format!("hash = {:?}: write what `catraca keygen` prints", written.hash)
        })?;
        let fix = fixed(written.fix)?;
        let (name, namespace) = (written.name, written.namespace);
        let caller = Arc::new(Caller { name, role: *role, namespace, fix });
        let twice = self.held.insert(first(&hash), Held { hash, caller });
        ensure!(twice.is_none(), "hash: another key has the same; make one for each caller");
        Ok(())
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

fn fixed(fix: BTreeMap<String, String>) -> Result<Vec<(String, String)>> {
    ensure!(fix.len() <= FIXED_MAX, "fix: a key may fix {FIXED_MAX} attributes");
    for (attribute, value) in &fix {
        ensure!(
            !attribute.is_empty() && !value.is_empty() && value.len() <= VALUE_BYTES_MAX,
            "fix = {{ {attribute} = {value:?} }}: write a value of 1 to {VALUE_BYTES_MAX} bytes"
        );
    }
    Ok(fix.into_iter().collect())
}

/// The first bytes of a hash, by which it is looked up.
fn first(hash: &blake3::Hash) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}
