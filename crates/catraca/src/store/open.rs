//! Opens the store that a URL names, for decisions and for locks.
//!
//! Both come from one function, so that a URL that is unknown to one of them is refused by both.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::SharedStore;
use crate::locks::LockStore;
#[cfg(feature = "redis")]
use crate::redis::is_redis;
use crate::url::{is_postgres, redact};

/// The kind of store that a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// The memory of this process.
    Memory,
    /// Redis, Valkey, or another server of its protocol: one, behind Sentinels, or a cluster.
    Redis,
    /// PostgreSQL.
    Postgres,
}

/// Settings of a shared store.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The timeout of a round trip; that of the store if absent.
    pub deadline: Option<Duration>,
    /// A PEM file of trusted certificates, for Redis.
    pub ca_file: Option<PathBuf>,
    /// How many replicas of Redis must have a lease before it is granted.
    pub lock_replicas: u32,
}

/// The two sides of a shared store. Each has its own connections, so that decisions and locks do
/// not wait for each other.
#[derive(Clone)]
pub struct SharedStores {
    /// Applies the batches of decisions.
    pub decisions: Arc<dyn SharedStore>,
    /// Keeps leases and slots.
    pub locks: Arc<dyn LockStore>,
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenStoreError {
    /// No store has this scheme.
    #[error(
        "{url:?}: write \"memory:\", \"redis://HOST:6379\", \"redis+sentinel://HOST:26379/NAME\", \
         \"redis+cluster://HOST:6379\" or \"postgres://USER@HOST/DATABASE\""
    )]
    UnknownScheme {
        /// The URL, without its password.
        url: String,
    },
    /// This program was built without the store.
    #[error("{url:?}: this program was built without the feature `{feature}`")]
    NotBuilt {
        /// The URL, without its password.
        url: String,
        /// The missing feature.
        feature: &'static str,
    },
    /// Redis could not be reached, or cannot be used.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] crate::redis::ConnectError),
    /// PostgreSQL could not be reached, or cannot be used.
    #[cfg(feature = "postgres-store")]
    #[error(transparent)]
    Postgres(#[from] crate::postgres::PostgresError),
}

impl StoreKind {
    /// The schemes of URLs. A suffix after `+` selects a variant, as in `redis+cluster`.
    pub const SCHEMES: [&'static str; 8] =
        ["memory", "redis", "rediss", "valkey", "valkeys", "unix", "postgres", "postgresql"];

    /// The kind of store by the scheme of its URL. An unknown scheme is an error.
    pub fn from_url(url: &str) -> Result<Self, OpenStoreError> {
        if url == "memory:" {
            return Ok(Self::Memory);
        }
        if is_redis(url) {
            return Ok(Self::Redis);
        }
        if is_postgres(url) {
            return Ok(Self::Postgres);
        }
        Err(OpenStoreError::UnknownScheme { url: redact(url) })
    }
}

/// Opens the shared store of a URL, on the current tokio runtime; nothing for `memory:`, which each
/// engine has.
pub async fn open(
    url: &str,
    options: &OpenOptions,
) -> Result<Option<SharedStores>, OpenStoreError> {
    match StoreKind::from_url(url)? {
        StoreKind::Memory => Ok(None),
        StoreKind::Redis => open_redis(url, options).await.map(Some),
        StoreKind::Postgres => open_postgres(url, options).await.map(Some),
    }
}

#[cfg(feature = "redis")]
async fn open_redis(url: &str, options: &OpenOptions) -> Result<SharedStores, OpenStoreError> {
    use crate::redis::{RedisLocks, RedisOptions, RedisStore};

    let defaults = RedisOptions::default();
    let redis_options = RedisOptions {
        deadline: options.deadline.unwrap_or(defaults.deadline),
        ca_file: options.ca_file.clone(),
        ..defaults
    };
    let replicas = options.lock_replicas;
    let decisions = RedisStore::connect(url, redis_options.clone()).await?;
    let locks = RedisLocks::connect_replicated(url, redis_options, replicas).await?;
    Ok(SharedStores { decisions: Arc::new(decisions), locks: Arc::new(locks) })
}

#[cfg(not(feature = "redis"))]
async fn open_redis(url: &str, _: &OpenOptions) -> Result<SharedStores, OpenStoreError> {
    Err(OpenStoreError::NotBuilt { url: redact(url), feature: "redis" })
}

#[cfg(feature = "postgres-store")]
async fn open_postgres(url: &str, options: &OpenOptions) -> Result<SharedStores, OpenStoreError> {
    use crate::postgres::{PostgresOptions, PostgresStore};

    let defaults = PostgresOptions::default();
    let deadline = options.deadline.unwrap_or(defaults.deadline);
    let for_decisions = PostgresOptions { deadline, ..defaults };
    // The store of the decisions deletes expired cells already.
    let for_locks = PostgresOptions { sweep_every: None, ..for_decisions };
    let decisions = PostgresStore::open(url, for_decisions).await?;
    let locks = PostgresStore::open(url, for_locks).await?;
    Ok(SharedStores { decisions: Arc::new(decisions), locks: Arc::new(locks) })
}

#[cfg(not(feature = "postgres-store"))]
async fn open_postgres(url: &str, _: &OpenOptions) -> Result<SharedStores, OpenStoreError> {
    Err(OpenStoreError::NotBuilt { url: redact(url), feature: "postgres-store" })
}

/// Whether a URL names Redis, which this program was built without.
#[cfg(not(feature = "redis"))]
fn is_redis(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| scheme.starts_with("redis"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_scheme_is_refused_without_showing_the_password() {
        let refused = StoreKind::from_url("memcached://:s3cret@x").unwrap_err().to_string();
        assert!(refused.contains("write \"memory:\", \"redis://HOST:6379\""), "{refused}");
        assert!(!refused.contains("s3cret"), "{refused}");
    }
}
