//! The Redis store: counters and blocks that several nodes share, and a lock store.
//!
//! A batch, or an operation on locks, is one call of a Lua script, which makes the decision on the
//! server in one round trip. The layouts of keys, arguments and replies are described at the top of
//! the Lua files. A call that may have been applied is not sent again, and no call waits longer
//! than its deadline.

mod by_group;
mod byte_reader;
mod clock_offset;
mod cluster;
mod connect_error;
mod connection;
mod decode;
mod encode;
mod failure;
mod handshake;
mod hash_slots;
mod keys;
mod lock_store;
mod node_exchange;
mod options;
mod primary_ids;
mod refresh_timer;
mod script;
mod script_args;
mod sentinel;
mod slot_map;
mod status;
mod store;
mod url;

pub use connect_error::ConnectError;
pub use decode::decode_reply;
pub use keys::RedisKeys;
pub use lock_store::{LOCK_SCRIPT, RedisLocks};
pub use options::RedisOptions;
pub use script::SCRIPT;
pub use script_args::ScriptArgs;
pub use store::RedisStore;
pub use url::is_redis;
