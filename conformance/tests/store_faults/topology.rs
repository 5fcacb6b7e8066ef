//! The topologies of the store, with their faults.

mod cluster;
mod postgres;
mod records;
mod sentinel;
mod single;

pub use cluster::ClusterTopology;
pub use postgres::{PostgresPair, Replication};
pub use records::RedisWithRecords;
pub use sentinel::{SENTINELS, SentinelTopology};
pub use single::SingleRedis;
