//! One Redis as the store, and a PostgreSQL with a streaming replica for the records.

use catraca_testkit::postgres::PostgresServer;

use super::{PostgresPair, Replication, SingleRedis};
use crate::node::RecordsPlace;
use crate::run::Topology;

/// A store without faults, and records with them.
pub struct RedisWithRecords {
    redis: SingleRedis,
    pub records: PostgresPair,
    /// Whether the replica is the primary now.
    is_promoted: bool,
}

impl RedisWithRecords {
    /// Starts all of them; `None` if Redis is not installed.
    pub fn start(replication: Replication) -> Option<Self> {
        let redis = SingleRedis::start(&[])?;
        Some(Self { redis, records: PostgresPair::start(replication), is_promoted: false })
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

    fn records(&self) -> Option<RecordsPlace> {
        Some(RecordsPlace::Shared(self.records.direct_url()))
    }

    fn recorded_blocks(&self) -> Vec<String> {
        let rows = self.primary().psql("postgres", "SELECT encode(key, 'hex') FROM blocks");
        rows.into_iter().flatten().collect()
    }
}
