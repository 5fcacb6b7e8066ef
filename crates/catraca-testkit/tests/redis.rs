//! The Redis store on real servers, single, under Sentinels and as a cluster: the store contract,
//! equality with the memory store, concurrent processes, and errors of servers.
//!
//! The server is `CATRACA_REDIS_SERVER`, else `redis-server` on the path; without one the tests
//! are skipped.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "redis/acl.rs"]
mod acl;
#[path = "redis/cluster.rs"]
mod cluster;
#[path = "redis/concurrent_processes.rs"]
mod concurrent_processes;
#[path = "redis/connecting.rs"]
mod connecting;
#[path = "redis/contract.rs"]
mod contract;
#[path = "redis/equality.rs"]
mod equality;
#[path = "redis/foreign_values.rs"]
mod foreign_values;
#[path = "redis/helpers.rs"]
mod helpers;
#[path = "redis/late_calls.rs"]
mod late_calls;
#[path = "redis/locks.rs"]
mod locks;
#[path = "redis/nodes.rs"]
mod nodes;
#[path = "lua/random.rs"]
mod random;
#[path = "redis/sentinels.rs"]
mod sentinels;
#[path = "redis/server_errors.rs"]
mod server_errors;
#[path = "redis/sharded.rs"]
mod sharded;
#[path = "redis/store_status.rs"]
mod store_status;
