//! Errors of connecting to Redis. They contain neither passwords nor the URL as it was given.

use std::path::PathBuf;

/// Why a Redis store could not be opened.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL or the prefix is invalid.
    #[error("invalid Redis URL: {0}")]
    Url(String),
    /// The file of trusted certificates cannot be used.
    #[error("the certificates in {} cannot be used: {reason}", file.display())]
    Certificates {
        /// The file.
        file: PathBuf,
        /// The cause.
        reason: String,
    },
    /// Nothing answers at this address, or it is not Redis.
    #[error("Redis at {server} cannot be reached: {reason}")]
    Unreachable {
        /// The address.
        server: String,
        /// The cause.
        reason: String,
    },
    /// The server answers with an error.
    #[error("Redis at {server} refuses to serve: {reason}")]
    Refused {
        /// The address.
        server: String,
        /// The error code and the remedy.
        reason: String,
    },
    /// The server evicts keys when its memory is full.
    #[error(
        "Redis at {server} evicts keys when it is full (maxmemory-policy is {policy}), and a block \
         that is evicted is lifted: run `redis-cli CONFIG SET maxmemory-policy noeviction` and \
         write the same in its configuration file"
    )]
    Evicts {
        /// The address.
        server: String,
        /// Its `maxmemory-policy`.
        policy: String,
    },
    /// The store of a URL could not be opened.
    #[error("{url} cannot be used: {source}")]
    Store {
        /// The URL without user and password.
        url: String,
        /// The cause.
        source: Box<ConnectError>,
    },
    /// The server is a replica.
    #[error(
        "Redis at {server} is a replica and takes no writes: name its primary, or let \
         redis+sentinel:// or redis+cluster:// find it"
    )]
    Replica {
        /// The address.
        server: String,
    },
}

impl ConnectError {
    /// The same error, with the URL of the store; the URL must not contain a password.
    pub(super) fn with_url(self, url: &str) -> Self {
        Self::Store { url: url.to_owned(), source: Box::new(self) }
    }
}
