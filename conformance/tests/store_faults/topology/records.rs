//! One Redis as the store, and a PostgreSQL with a streaming replica for the records, also behind
//! proxies or a PgBouncer.

use catraca_testkit::postgres::PostgresServer;

use super::{PostgresPair, Replication, SingleRedis};
use crate::node::RecordsPlace;
use crate::run::Topology;

/// A store without faults, and records with them.
pub struct RedisWithRecords {
    redis: SingleRedis,
    pub records: PostgresPair,
    /// Whether nodes reach the records through the pooler, or through proxies of their own.
    is_indirect: bool,
    /// Whether the replica is the primary now.
    is_promoted: bool,
}

impl RedisWithRecords {
    /// Starts all of them; `None` if Redis is not installed.
    pub fn start(replication: Replication) -> Option<Self> {
        Self::over(PostgresPair::start(replication))
    }

    /// As `start`; each node reaches the primary of the records through a proxy.
    pub fn start_behind_proxies() -> Option<Self> {
        let records = PostgresPair::start(Replication::Asynchronous);
        Some(Self { is_indirect: true, ..Self::over(records)? })
    }

    /// As `start`; nodes name a PgBouncer. `None` also if it is not installed.
    pub fn start_behind_pooler(replication: Replication) -> Option<Self> {
        let records = PostgresPair::start_behind_pooler(replication)?;
        Some(Self { is_indirect: true, ..Self::over(records)? })
    }

    fn over(records: PostgresPair) -> Option<Self> {
        let redis = SingleRedis::start(&[])?;
        Some(Self { redis, records, is_indirect: false, is_promoted: false })
    }

    /// Makes a primary of the replica.
    pub fn promote(&mut self) {
        self.records.promote();
        self.is_promoted = true;
    }

    fn primary(&self) -> &PostgresServer {
        if self.is_promoted { &self.records.replica } else { &self.records.primary }
    }
}

impl Topology for RedisWithRecords {
    fn store_url(&self, node: usize) -> String {
        self.redis.store_url(node)
    }

    fn records(&self, node: usize) -> Option<RecordsPlace> {
        Some(RecordsPlace::Shared(match self.is_indirect {
            true => self.records.store_url(node),
            false => self.records.direct_url(),
        }))
    }

    fn primaries(&self) -> String {
        self.records.primaries()
    }

    fn recorded_blocks(&self) -> Vec<String> {
        let rows = self.primary().psql("postgres", "SELECT encode(key, 'hex') FROM blocks");
        rows.into_iter().flatten().collect()
    }
}
