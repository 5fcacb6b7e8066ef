//! The engine over a store that nodes share: while the store is available, and while it is not.

mod background_errors;
mod block_cache;
#[cfg(feature = "records")]
mod changes_during_reads;
mod helpers;
mod local_fallback;
#[cfg(feature = "records")]
mod records;
mod same_as_local;
mod store_recovery;
