//! The Redis store: counters and blocks that several nodes share, one script and one trip a batch;
//! and locks, with a script of their own.
//!
//! The layout of batches and replies is written where the script reads it, in the heads of its
//! files. Must not decide anything: the script does. Must not send a batch twice, nor wait longer
//! than its deadline.

mod ahead;
mod call;
mod cluster;
mod error;
mod failure;
mod greet;
mod keys;
mod link;
mod locks;
mod options;
mod pack;
mod pulse;
mod reader;
mod reply;
mod script;
mod send;
mod sentinel;
mod slots;
mod split;
mod store;
mod url;

pub use call::Call;
pub use error::ConnectError;
pub use keys::{Keys, Kind};
pub use locks::{LOCK_SCRIPT, RedisLocks};
pub use options::RedisOptions;
pub use reply::read;
pub use script::SCRIPT;
pub use store::RedisStore;
pub use url::is_redis;
