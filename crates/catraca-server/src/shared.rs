//! The stores that nodes may share, behind one type.
//!
//! Must not hold a rule: every call is handed on.

use anyhow::Result;
use catraca::core::batch::{Batch, Reply};
use catraca::postgres::{PostgresOptions, PostgresStore};
use catraca::records::is_postgres;
use catraca::redis::{RedisOptions, RedisStore};
use catraca::store::{Pulse, Returning, SharedStore, StoreError, When};

use crate::cmd::serve::Sharing;

/// A store on some server.
#[derive(Debug)]
pub enum Anywhere {
    /// Redis or its kin.
    Redis(RedisStore),
    /// PostgreSQL.
    Postgres(PostgresStore),
}

/// An engine that decides with other nodes.
pub type SharedEngine = catraca::SharedEngine<Anywhere>;

impl Anywhere {
    /// Connects, or says why it cannot be.
    pub async fn connect(sharing: &Sharing) -> Result<Self> {
        if is_postgres(&sharing.url) {
            let usual = PostgresOptions::default();
            let deadline = sharing.deadline.unwrap_or(usual.deadline);
            let options = PostgresOptions { deadline, ..usual };
            return Ok(Self::Postgres(PostgresStore::open(&sharing.url, options).await?));
        }
        let usual = RedisOptions::default();
        let options = RedisOptions {
            deadline: sharing.deadline.unwrap_or(usual.deadline),
            ca_file: sharing.ca_file.clone(),
            ..usual
        };
        Ok(Self::Redis(RedisStore::connect(&sharing.url, options).await?))
    }
}

impl SharedStore for Anywhere {
    async fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        match self {
            Self::Redis(store) => store.apply(batch, when).await,
            Self::Postgres(store) => store.apply(batch, when).await,
        }
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        match self {
            Self::Redis(store) => store.pulse().await,
            Self::Postgres(store) => store.pulse().await,
        }
    }

    fn danger(&self) -> Option<String> {
        match self {
            Self::Redis(store) => store.danger(),
            Self::Postgres(store) => store.danger(),
        }
    }

    fn returns(&self) -> Returning {
        match self {
            Self::Redis(store) => store.returns(),
            Self::Postgres(store) => store.returns(),
        }
    }

    async fn stir(&self) -> Result<(), StoreError> {
        match self {
            Self::Redis(store) => store.stir().await,
            Self::Postgres(store) => store.stir().await,
        }
    }

    async fn claim(&self, records: &str) -> Result<String, StoreError> {
        match self {
            Self::Redis(store) => store.claim(records).await,
            Self::Postgres(store) => store.claim(records).await,
        }
    }

    fn spreads(&self) -> bool {
        match self {
            Self::Redis(store) => store.spreads(),
            Self::Postgres(store) => store.spreads(),
        }
    }
}
