//! Redis as tests need it: private servers, alone, under Sentinels or as a cluster.
//!
//! The program is `CATRACA_REDIS_SERVER`, else `redis-server` on the path. Everything listens on
//! loopback and ends with its guard. Must not touch any other server.

mod cluster;
mod sentinels;
mod server;
mod wait;

pub use cluster::RedisCluster;
pub use sentinels::RedisSentinels;
pub use server::{RedisServer, program};
pub use wait::until;
