//! Private Redis servers for tests: single, under Sentinels or as a cluster.
//!
//! The program is `CATRACA_REDIS_SERVER`, else `redis-server` on the path. If the variable is
//! empty, the tests are left out. Servers listen on loopback and are killed when their guard is
//! dropped.

mod cluster;
mod sentinels;
mod server;
mod wait;

pub use cluster::RedisCluster;
pub use sentinels::RedisSentinels;
pub use server::{RedisServer, program};
pub use wait::until;
