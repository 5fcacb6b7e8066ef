//! A store that nodes share, as `[store]` names it.
//!
//! Every mistake is named with its field and a fix. Must not connect.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use catraca::SharedOptions;
use catraca::core::time::parse_span;
use catraca::records::{is_postgres, redacted};
use catraca::redis::is_redis;

use super::keep::{password_in, text, with_password};

/// The bounds of a deadline that make sense.
const DEADLINES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(10));
/// The store that spreads over servers.
const CLUSTER: &str = "redis+cluster://";
/// What only a store in this process has.
pub const ALONE: [&str; 2] = ["snapshot", "snapshot_interval"];
/// What only a shared store has.
pub const SHARED: [&str; 7] = [
    "nodes",
    "deny_cache",
    "deadline",
    "password_file",
    "sentinel_password_file",
    "ca_file",
    "shard_by",
];

/// Where the store is, and how it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The URL, which may hold a password.
    pub url: String,
    /// The longest that a trip may take, if it is said.
    pub deadline: Option<Duration>,
    /// Certificates to trust.
    pub ca_file: Option<PathBuf>,
    /// How many nodes there are.
    pub nodes: u32,
    /// Whether blocks that a node knows of cost no trip.
    pub deny_cache: bool,
}

impl Sharing {
    /// The store that `[store]` names, if nodes share it.
    pub fn read(store: &toml::Table, folder: &Path) -> Result<Option<Self>> {
        let url = text("store", store, "url")?.unwrap_or("memory:");
        if url == "memory:" {
            let odd = SHARED.iter().find(|field| store.contains_key(**field));
            return match odd {
                Some(field) => bail!(
                    "[store] {field} is for a store that nodes share, and this one is in memory: \
                     name one in `url`, or leave it out"
                ),
                None => Ok(None),
            };
        }
        ensure!(
            is_redis(url) || is_postgres(url),
            "[store] url = {:?}: write \"memory:\", \"redis://HOST:6379\", \
             \"redis+sentinel://HOST:26379/NAME\", \"redis+cluster://HOST:6379\" or \
             \"postgres://USER@HOST/DATABASE\"",
            redacted(url)
        );
        if let Some(field) = ALONE.iter().find(|field| store.contains_key(**field)) {
            bail!(
                "[store] {field} is for counters in memory: leave it out, or write \
                 url = \"memory:\""
            );
        }
        ensure!(
            !store.contains_key("ca_file") || is_redis(url),
            "[store] ca_file is for Redis: write `sslrootcert` into the URL of PostgreSQL"
        );
        ensure!(
            !store.contains_key("shard_by") || url.starts_with(CLUSTER),
            "[store] shard_by is for {CLUSTER}: leave it out, since one server has all keys here"
        );
        let url = with_password("store", url, text("store", store, "password_file")?, folder)?;
        let sentinel = text("store", store, "sentinel_password_file")?;
        Ok(Some(Self {
            url: with_sentinel_password(url, sentinel, folder)?,
            deadline: deadline(store)?,
            ca_file: text("store", store, "ca_file")?.map(|file| folder.join(file)),
            nodes: nodes(store)?,
            deny_cache: store.get("deny_cache").and_then(toml::Value::as_bool).unwrap_or(true),
        }))
    }

    /// What the engine is told.
    pub fn options(&self) -> SharedOptions {
        SharedOptions { nodes: self.nodes, deny_cache: self.deny_cache }
    }
}

/// The URL with the password that Sentinels want, from a file.
fn with_sentinel_password(url: String, file: Option<&str>, folder: &Path) -> Result<String> {
    let Some(file) = file else { return Ok(url) };
    ensure!(
        url.split("://").next().is_some_and(|scheme| scheme.ends_with("+sentinel")),
        "[store] sentinel_password_file is for redis+sentinel://: leave it out, or name Sentinels"
    );
    let password = password_in("store", "sentinel_password_file", file, folder)?;
    let joint = if url.contains('?') { '&' } else { '?' };
    Ok(format!("{url}{joint}sentinel_password={password}"))
}

fn nodes(store: &toml::Table) -> Result<u32> {
    let Some(value) = store.get("nodes") else { return Ok(1) };
    let nodes = value.as_integer().and_then(|nodes| u32::try_from(nodes).ok());
    let nodes = nodes.filter(|nodes| (1..=1_000).contains(nodes));
    nodes.with_context(|| {
        format!("[store] nodes = {value}: write how many there are, from 1 to 1000")
    })
}

fn deadline(store: &toml::Table) -> Result<Option<Duration>> {
    let Some(text) = text("store", store, "deadline")? else { return Ok(None) };
    let fix = || format!("[store] deadline = {text:?}: write a time from 1ms to 10s");
    let span = parse_span(text).with_context(fix)?;
    let deadline = Duration::from_micros(u64::try_from(span.micros()).unwrap_or_default());
    ensure!((DEADLINES.0..=DEADLINES.1).contains(&deadline), "{}", fix());
    Ok(Some(deadline))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharing(text: &str) -> Result<Option<Sharing>> {
        Sharing::read(&toml::from_str(text).unwrap(), Path::new("shop"))
    }

    #[test]
    fn a_store_is_shared_when_its_url_says_so() {
        assert_eq!(sharing("").unwrap(), None);
        assert_eq!(sharing("url = 'memory:'\nblock_mib = 3").unwrap(), None);
        let usual = sharing("url = 'redis://cache:6379'").unwrap().unwrap();
        assert_eq!((usual.nodes, usual.deny_cache, usual.deadline), (1, true, None));
        let all = "url = 'redis+sentinel://a:1,b:2/main'\nnodes = 4\ndeny_cache = false\n\
                   deadline = '20ms'\nca_file = 'ca.pem'";
        let all = sharing(all).unwrap().unwrap();
        assert_eq!((all.nodes, all.deny_cache), (4, false));
        assert_eq!(all.deadline, Some(Duration::from_millis(20)));
        assert_eq!(all.ca_file.as_deref(), Some(Path::new("shop/ca.pem")));
        assert!(sharing("url = 'postgres://ana@db/shop'").unwrap().is_some());
    }

    #[test]
    fn sentinels_have_a_password_of_their_own() {
        let folder = std::env::temp_dir().join(format!("catraca-words-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("server"), "a b\n").unwrap();
        std::fs::write(folder.join("sentinel"), "c&d\n").unwrap();
        let text = "url = 'redis+sentinel://default@a/main'\npassword_file = 'server'\n\
                    sentinel_password_file = 'sentinel'";
        let read = Sharing::read(&toml::from_str(text).unwrap(), &folder).unwrap().unwrap();
        let wanted = "redis+sentinel://default:a%20b@a/main?sentinel_password=c%26d";
        assert_eq!(read.url, wanted);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn mistakes_are_named_with_a_fix() {
        let wrong = [
            ("url = 'memcached://:s3cret@x'", "write \"memory:\", \"redis://HOST:6379\""),
            ("nodes = 3", "[store] nodes is for a store that nodes share"),
            ("url = 'redis://x'\nsnapshot = 'y'", "[store] snapshot is for counters in memory"),
            ("url = 'postgres://a@b/c'\nca_file = 'x'", "write `sslrootcert` into the URL"),
            ("url = 'redis://x'\nshard_by = 'bank'", "shard_by is for redis+cluster://"),
            (
                "url = 'redis://x'\nsentinel_password_file = 'x'",
                "sentinel_password_file is for redis+sentinel://",
            ),
            ("shard_by = 'bank'", "[store] shard_by is for a store that nodes share"),
            ("url = 'redis://x'\nnodes = 0", "nodes = 0: write how many there are"),
            ("url = 'redis://x'\ndeadline = '1m'", "deadline = \"1m\": write a time from 1ms"),
        ];
        for (text, fix) in wrong {
            let said = sharing(text).unwrap_err().to_string();
            assert!(said.contains(fix) && !said.contains("s3cret"), "{said}");
        }
    }
}
