//! The configuration of a shared store: `[store]` with its files resolved.
//!
//! Reads password files; does not connect.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use catraca::SharedOptions;
use catraca::shared::RecordsScope;
use catraca::store::StoreKind;

use super::StoreSection;
use super::passwords::{add_password, read_password};

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
    /// Whether all nodes share their records.
    pub records: RecordsScope,
}

impl SharedStoreConfig {
    /// Resolves `[store]`; `None` for the store in memory.
    pub fn resolve(
        store: &StoreSection,
        records: RecordsScope,
        folder: &Path,
    ) -> Result<Option<Self>> {
        if store.kind() == StoreKind::Memory {
            return Ok(None);
        }
        let url = add_password("store", &store.url, store.password_file.as_deref(), folder)?;
        let sentinel = store.sentinel_password_file.as_deref();
        Ok(Some(Self {
            url: add_sentinel_password(url, sentinel, folder)?,
            deadline: store.deadline,
            ca_file: store.ca_file.as_ref().map(|file| folder.join(file)),
            nodes: u32::try_from(store.nodes)?,
            deny_cache: store.deny_cache,
            records,
        }))
    }

    /// The options of the engine.
    pub fn options(&self) -> SharedOptions {
        SharedOptions { nodes: self.nodes, deny_cache: self.deny_cache, records: self.records }
    }
}

/// Adds the password for the Sentinels from a file to the URL.
fn add_sentinel_password(url: String, file: Option<&str>, folder: &Path) -> Result<String> {
    let Some(file) = file else { return Ok(url) };
    let password = read_password("store", "sentinel_password_file", file, folder)?;
    let separator = if url.contains('?') { '&' } else { '?' };
    Ok(format!("{url}{separator}sentinel_password={password}"))
}

#[cfg(test)]
mod tests {
    use catraca::core::located::Diagnostics;

    use super::*;
    use crate::config::parse;

    fn store(text: &str) -> Result<StoreSection, Diagnostics> {
        parse(&format!("[store]\n{text}\n")).map(|loaded| loaded.process.store)
    }

    fn config(text: &str) -> Result<Option<SharedStoreConfig>> {
        let records = RecordsScope::Shared;
        SharedStoreConfig::resolve(&store(text).unwrap(), records, Path::new("shop"))
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
        let store = store(text).unwrap();
        let read = SharedStoreConfig::resolve(&store, RecordsScope::Shared, &folder);
        let read = read.unwrap().unwrap();
        let expected = "redis+sentinel://default:a%20b@a/main?sentinel_password=c%26d";
        assert_eq!(read.url, expected);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn errors_have_a_location_and_a_fix() {
        let wrong = [
            (
                "url = 'memcached://:s3cret@x'",
                "catalog:2:7: error[bad-url]",
                "begin it with one of",
            ),
            ("url = 'redis+x://:s3cret@x'", "catalog:2:7: error[bad-url]", "\"redis://HOST:6379\""),
            ("nodes = 3", "catalog:2:1: error[misplaced-setting]", "for shared stores"),
            ("url = 'redis://x'\nsnapshot = 'y'", "catalog:3:1: error", "for counters in memory"),
            ("url = 'postgres://a@b/c'\nca_file = 'x'", "catalog:3:1: error", "`sslrootcert`"),
            ("url = 'redis://x'\nshard_by = 'bank'", "catalog:3:1: error", "redis+cluster://"),
            (
                "url = 'redis://x'\nsentinel_password_file = 'x'",
                "catalog:3:1: error",
                "redis+sentinel://",
            ),
            ("shard_by = 'bank'", "catalog:2:1: error", "`shard_by` is for shared stores"),
            ("url = 'redis://x'\nnodes = 0", "catalog:3:9: error", "write at least 1"),
            (
                "url = 'redis://x'\ndeadline = '1m'",
                "catalog:3:12: error",
                "from \"1ms\" to \"10s\"",
            ),
        ];
        for (text, start, fix) in wrong {
            let message = store(text).unwrap_err().to_string();
            assert!(message.starts_with(start) && message.contains(fix), "{message}");
            assert!(!message.contains("s3cret"), "{message}");
        }
    }
}
