//! Why a Redis store cannot begin. Must not show a password, nor a URL that may hold one.

use std::path::PathBuf;

/// Why a Redis store cannot begin.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL, or a setting beside it, cannot be used.
    #[error("the Redis URL cannot be used: {0}")]
    Url(String),
    /// The certificates to trust cannot be read.
    #[error("the certificates in {} cannot be used: {reason}", file.display())]
    Certificates {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody answers there, or something else than Redis.
    #[error("Redis at {server} cannot be reached: {reason}")]
    Unreachable {
        /// Where.
        server: String,
        /// What happened.
        reason: String,
    },
    /// The server answers, but not to us.
    #[error("Redis at {server} refuses to serve: {reason}")]
    Refused {
        /// Where.
        server: String,
        /// Its word and what to do.
        reason: String,
    },
    /// The server may forget blocks to make room.
    #[error(
        "Redis at {server} evicts keys when it is full (maxmemory-policy is {policy}), and a block \
         that is evicted is lifted: run `redis-cli CONFIG SET maxmemory-policy noeviction` and \
         write the same in its configuration file"
    )]
    Evicts {
        /// Where.
        server: String,
        /// Its `maxmemory-policy`.
        policy: String,
    },
    /// The server only follows another.
    #[error(
        "Redis at {server} is a replica and takes no writes: name its primary, or let \
         redis+sentinel:// or redis+cluster:// find it"
    )]
    Replica {
        /// Where.
        server: String,
    },
}
