//! The engine over a store that nodes share: while the store is available, and while it is not.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

#[path = "shared/block_cache.rs"]
mod block_cache;
#[path = "shared/helpers.rs"]
mod helpers;
#[path = "shared/local_fallback.rs"]
mod local_fallback;
#[cfg(feature = "records")]
#[path = "shared/records.rs"]
mod records;
#[path = "shared/same_as_local.rs"]
mod same_as_local;
#[path = "shared/store_recovery.rs"]
mod store_recovery;
