//! The memory store: exact under any crowd, bounded under any flood, whole again after a restart.

#[path = "memory/acts.rs"]
mod acts;
#[path = "memory/crowd.rs"]
mod crowd;
#[path = "memory/expiry.rs"]
mod expiry;
#[path = "memory/flood.rs"]
mod flood;
#[path = "memory/full.rs"]
mod full;
#[path = "memory/helpers.rs"]
mod helpers;
#[path = "memory/plain.rs"]
mod plain;
#[path = "memory/pools.rs"]
mod pools;
#[path = "memory/replay.rs"]
mod replay;
#[path = "memory/snapshot.rs"]
mod snapshot;
#[path = "memory/story.rs"]
mod story;
