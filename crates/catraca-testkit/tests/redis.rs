//! The Redis store on real servers: the contract of a store, and what servers do to it.
//!
//! The server is `CATRACA_REDIS_SERVER`, else `redis-server` on the path; without one nothing is
//! tested. Must not touch any other server.

#[path = "redis/connecting.rs"]
mod connecting;
#[path = "redis/contract.rs"]
mod contract;
#[path = "redis/desk.rs"]
mod desk;
#[path = "redis/sharing.rs"]
mod sharing;
#[path = "redis/trouble.rs"]
mod trouble;
