//! The topologies of the store, with their faults.

mod cluster;
mod postgres;
mod sentinel;
mod single;

pub use cluster::ClusterTopology;
pub use postgres::{PostgresPair, Replication};
pub use sentinel::SentinelTopology;
pub use single::SingleRedis;
