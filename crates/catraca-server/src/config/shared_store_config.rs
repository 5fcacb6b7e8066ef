//! The configuration of a shared store in `[store]`.
//!
//! Validates the fields and reads password files; does not connect. Error messages name the field
//! and a fix.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use catraca::SharedOptions;
use catraca::core::time::parse_span;
use catraca::store::StoreKind;

use super::section::{add_password, read_password, text};

/// Bounds of `deadline`.
const DEADLINE_BOUNDS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(10));
/// The URL scheme of a Redis Cluster.
const CLUSTER: &str = "redis+cluster://";
/// Fields that only the store in memory has.
pub const MEMORY_ONLY_FIELDS: [&str; 2] = ["snapshot", "snapshot_interval"];
/// Fields that only a shared store has.
pub const SHARED_ONLY_FIELDS: [&str; 7] = [
    "nodes",
    "deny_cache",
    "deadline",
    "password_file",
    "sentinel_password_file",
    "ca_file",
    "shard_by",
];

/// The configuration of a shared store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedStoreConfig {
    /// The URL; may contain a password.
    pub url: String,
    /// The timeout of a round trip; `None` for the store's default.
    pub deadline: Option<Duration>,
    /// A PEM file of trusted certificates, for Redis.
    pub ca_file: Option<PathBuf>,
    /// The number of nodes, for each node's fraction of a limit while the store is unreachable.
    pub nodes: u32,
    /// Whether a node denies blocked callers from its own cache, without a round trip.
    pub deny_cache: bool,
}

impl SharedStoreConfig {
    /// Reads `[store]`; `None` for the store in memory.
    pub fn read(store: &toml::Table, folder: &Path) -> Result<Option<Self>> {
        let url = text("store", store, "url")?.unwrap_or("memory:");
        if url == "memory:" {
            let misplaced = SHARED_ONLY_FIELDS.iter().find(|field| store.contains_key(**field));
            return match misplaced {
                Some(field) => bail!(
                    "[store] {field} is for shared stores, and this one is in memory: set `url`, \
                     or leave it out"
                ),
                None => Ok(None),
            };
        }
        let kind = StoreKind::from_url(url).map_err(|error| anyhow!("[store] url = {error}"))?;
        if let Some(field) = MEMORY_ONLY_FIELDS.iter().find(|field| store.contains_key(**field)) {
            bail!(
                "[store] {field} is for counters in memory: leave it out, or write \
                 url = \"memory:\""
            );
        }
        ensure!(
            !store.contains_key("ca_file") || kind == StoreKind::Redis,
            "[store] ca_file is for Redis: for PostgreSQL, write `sslrootcert` into the URL"
        );
        ensure!(
            !store.contains_key("shard_by") || url.starts_with(CLUSTER),
            "[store] shard_by is for {CLUSTER}: leave it out, because this server has all keys"
        );
        let url = add_password("store", url, text("store", store, "password_file")?, folder)?;
        let sentinel = text("store", store, "sentinel_password_file")?;
        Ok(Some(Self {
            url: add_sentinel_password(url, sentinel, folder)?,
            deadline: deadline(store)?,
            ca_file: text("store", store, "ca_file")?.map(|file| folder.join(file)),
            nodes: nodes(store)?,
            deny_cache: store.get("deny_cache").and_then(toml::Value::as_bool).unwrap_or(true),
        }))
    }

    /// The options of the engine.
    pub fn options(&self) -> SharedOptions {
        SharedOptions { nodes: self.nodes, deny_cache: self.deny_cache }
    }
}

/// Adds the password for the Sentinels from a file to the URL.
fn add_sentinel_password(url: String, file: Option<&str>, folder: &Path) -> Result<String> {
    let Some(file) = file else { return Ok(url) };
    ensure!(
        url.split("://").next().is_some_and(|scheme| scheme.ends_with("+sentinel")),
        "[store] sentinel_password_file is for redis+sentinel://: leave it out, or change the URL"
    );
    let password = read_password("store", "sentinel_password_file", file, folder)?;
    let separator = if url.contains('?') { '&' } else { '?' };
    Ok(format!("{url}{separator}sentinel_password={password}"))
}

fn nodes(store: &toml::Table) -> Result<u32> {
    let Some(value) = store.get("nodes") else { return Ok(1) };
    let nodes = value.as_integer().and_then(|nodes| u32::try_from(nodes).ok());
    let nodes = nodes.filter(|nodes| (1..=1_000).contains(nodes));
    nodes.with_context(|| {
        format!("[store] nodes = {value}: write the number of nodes, from 1 to 1000")
    })
}

fn deadline(store: &toml::Table) -> Result<Option<Duration>> {
    let Some(text) = text("store", store, "deadline")? else { return Ok(None) };
    let fix = || format!("[store] deadline = {text:?}: write a time from 1ms to 10s");
    let span = parse_span(text).with_context(fix)?;
    let deadline = Duration::from_micros(u64::try_from(span.micros()).unwrap_or_default());
    ensure!((DEADLINE_BOUNDS.0..=DEADLINE_BOUNDS.1).contains(&deadline), "{}", fix());
    Ok(Some(deadline))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<Option<SharedStoreConfig>> {
        SharedStoreConfig::read(&toml::from_str(text).unwrap(), Path::new("shop"))
    }

    #[test]
    fn a_store_is_shared_when_its_url_says_so() {
        assert_eq!(config("").unwrap(), None);
        assert_eq!(config("url = 'memory:'\nblock_mib = 3").unwrap(), None);
        let defaults = config("url = 'redis://cache:6379'").unwrap().unwrap();
        assert_eq!((defaults.nodes, defaults.deny_cache, defaults.deadline), (1, true, None));
        let all = "url = 'redis+sentinel://a:1,b:2/main'\nnodes = 4\ndeny_cache = false\n\
                   deadline = '20ms'\nca_file = 'ca.pem'";
        let all = config(all).unwrap().unwrap();
        assert_eq!((all.nodes, all.deny_cache), (4, false));
        assert_eq!(all.deadline, Some(Duration::from_millis(20)));
        assert_eq!(all.ca_file.as_deref(), Some(Path::new("shop/ca.pem")));
        assert!(config("url = 'postgres://ana@db/shop'").unwrap().is_some());
    }

    #[test]
    fn sentinels_have_a_password_of_their_own() {
        let folder = std::env::temp_dir().join(format!("catraca-words-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("server"), "a b\n").unwrap();
        std::fs::write(folder.join("sentinel"), "c&d\n").unwrap();
        let text = "url = 'redis+sentinel://default@a/main'\npassword_file = 'server'\n\
                    sentinel_password_file = 'sentinel'";
        let read =
            SharedStoreConfig::read(&toml::from_str(text).unwrap(), &folder).unwrap().unwrap();
        let expected = "redis+sentinel://default:a%20b@a/main?sentinel_password=c%26d";
        assert_eq!(read.url, expected);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn errors_name_the_field_and_a_fix() {
        let wrong = [
            ("url = 'memcached://:s3cret@x'", "write \"memory:\", \"redis://HOST:6379\""),
            ("nodes = 3", "[store] nodes is for shared stores"),
            ("url = 'redis://x'\nsnapshot = 'y'", "[store] snapshot is for counters in memory"),
            ("url = 'postgres://a@b/c'\nca_file = 'x'", "write `sslrootcert` into the URL"),
            ("url = 'redis://x'\nshard_by = 'bank'", "shard_by is for redis+cluster://"),
            (
                "url = 'redis://x'\nsentinel_password_file = 'x'",
                "sentinel_password_file is for redis+sentinel://",
            ),
            ("shard_by = 'bank'", "[store] shard_by is for shared stores"),
            ("url = 'redis://x'\nnodes = 0", "nodes = 0: write the number of nodes"),
            ("url = 'redis://x'\ndeadline = '1m'", "deadline = \"1m\": write a time from 1ms"),
        ];
        for (text, fix) in wrong {
            let message = config(text).unwrap_err().to_string();
            assert!(message.contains(fix) && !message.contains("s3cret"), "{message}");
        }
    }
}
