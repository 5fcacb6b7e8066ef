//! Redis and PostgreSQL as shared stores, behind one type.

use anyhow::Result;
use catraca::core::batch::{Batch, Reply};
use catraca::postgres::{PostgresOptions, PostgresStore};
use catraca::redis::{RedisOptions, RedisStore};
use catraca::store::{Reconnection, SharedStore, StoreError, StoreStatus, When};

use crate::config::{SharedStoreConfig, SharedStoreKind};

/// A shared store of either kind.
#[derive(Debug)]
pub enum AnySharedStore {
    /// A store in Redis.
    Redis(RedisStore),
    /// A store in PostgreSQL.
    Postgres(PostgresStore),
}

/// The engine over a shared store.
pub type SharedEngine = catraca::SharedEngine<AnySharedStore>;

impl AnySharedStore {
    /// Connects to the store of `[store] url`.
    pub async fn connect(config: &SharedStoreConfig) -> Result<Self> {
        match SharedStoreKind::from_url(&config.url)? {
            SharedStoreKind::Redis => {
                let defaults = RedisOptions::default();
                let options = RedisOptions {
                    deadline: config.deadline.unwrap_or(defaults.deadline),
                    ca_file: config.ca_file.clone(),
                    ..defaults
                };
                Ok(Self::Redis(RedisStore::connect(&config.url, options).await?))
            }
            SharedStoreKind::Postgres => {
                let defaults = PostgresOptions::default();
                let deadline = config.deadline.unwrap_or(defaults.deadline);
                let options = PostgresOptions { deadline, ..defaults };
                Ok(Self::Postgres(PostgresStore::open(&config.url, options).await?))
            }
        }
    }
}

impl SharedStore for AnySharedStore {
    async fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        match self {
            Self::Redis(store) => store.apply(batch, when).await,
            Self::Postgres(store) => store.apply(batch, when).await,
        }
    }

    async fn status(&self) -> Result<StoreStatus, StoreError> {
        match self {
            Self::Redis(store) => store.status().await,
            Self::Postgres(store) => store.status().await,
        }
    }

    fn config_warning(&self) -> Option<String> {
        match self {
            Self::Redis(store) => store.config_warning(),
            Self::Postgres(store) => store.config_warning(),
        }
    }

    fn wait_reconnected(&self) -> Reconnection {
        match self {
            Self::Redis(store) => store.wait_reconnected(),
            Self::Postgres(store) => store.wait_reconnected(),
        }
    }

    async fn publish_change(&self) -> Result<(), StoreError> {
        match self {
            Self::Redis(store) => store.publish_change().await,
            Self::Postgres(store) => store.publish_change().await,
        }
    }

    async fn bind_records(&self, records: &str) -> Result<String, StoreError> {
        match self {
            Self::Redis(store) => store.bind_records(records).await,
            Self::Postgres(store) => store.bind_records(records).await,
        }
    }

    fn is_sharded(&self) -> bool {
        match self {
            Self::Redis(store) => store.is_sharded(),
            Self::Postgres(store) => store.is_sharded(),
        }
    }
}
