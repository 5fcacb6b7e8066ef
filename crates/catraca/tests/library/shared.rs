//! The engine over a store that nodes share: while the store is available, and while it is not.

mod background_errors;
mod block_cache;
#[cfg(feature = "records")]
mod changes_during_reads;
#[cfg(feature = "records")]
mod hanging_records;
mod helpers;
mod keys_on_the_move;
mod local_fallback;
#[cfg(feature = "records")]
mod lost_releases;
#[cfg(feature = "records")]
mod node_scope;
mod notices;
mod primaries;
#[cfg(feature = "records")]
mod records;
#[cfg(feature = "records")]
mod rule_conflicts;
mod same_as_local;
#[cfg(feature = "records")]
mod second_way;
#[cfg(feature = "records")]
mod stale_records;
mod store_recovery;
