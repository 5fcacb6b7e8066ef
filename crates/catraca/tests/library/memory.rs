//! The memory store: exact under concurrency, bounded under a flood of keys, restored from
//! snapshots.

mod concurrency;
mod expiry;
mod flood;
mod full_pools;
mod helpers;
mod namespaces;
mod operator_blocks;
mod pools;
mod random_batches;
mod reference_store;
mod replay;
mod snapshot;
