//! The Redis store on real servers, single, under Sentinels and as a cluster: the store contract,
//! equality with the memory store, concurrent processes, and errors of servers.
//!
//! The server is `CATRACA_REDIS_SERVER`, else `redis-server` on the path; without one the tests
//! are skipped.

mod acl;
mod cluster;
mod concurrent_processes;
mod connecting;
mod contract;
mod equality;
mod failed_writes;
mod foreign_values;
mod helpers;
mod late_calls;
mod locks;
mod node_messages;
mod nodes;
mod oracle;
mod sentinel_confirmation;
mod sentinels;
mod server_errors;
mod sharded;
mod store_status;
