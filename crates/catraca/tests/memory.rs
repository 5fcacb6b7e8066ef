//! The memory store: exact under concurrency, bounded under a flood of keys, restored from
//! snapshots.

#[path = "memory/concurrency.rs"]
mod concurrency;
#[path = "memory/expiry.rs"]
mod expiry;
#[path = "memory/flood.rs"]
mod flood;
#[path = "memory/full_pools.rs"]
mod full_pools;
#[path = "memory/helpers.rs"]
mod helpers;
#[path = "memory/operator_blocks.rs"]
mod operator_blocks;
#[path = "memory/pools.rs"]
mod pools;
#[path = "memory/random_batches.rs"]
mod random_batches;
#[path = "memory/reference_store.rs"]
mod reference_store;
#[path = "memory/replay.rs"]
mod replay;
#[path = "memory/snapshot.rs"]
mod snapshot;
