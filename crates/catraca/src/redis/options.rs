//! Options of the Redis store that are not in the URL.

use std::path::PathBuf;
use std::time::Duration;

use super::connect_error::ConnectError;

/// Timeouts, prefix and limits of a Redis store.
///
/// ```
/// use catraca::redis::RedisOptions;
///
/// let shop = RedisOptions { prefix: "shop:".to_owned(), ..RedisOptions::default() };
/// assert_eq!(shop.deadline.as_millis(), 50);
/// ```
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// How long a call may take; after it the store counts as unavailable.
    pub deadline: Duration,
    /// How long connecting may take, with the handshake.
    pub connect_timeout: Duration,
    /// The beginning of every key. Independent stores on one server need different prefixes or
    /// different databases.
    pub prefix: String,
    /// Trusted certificates for `rediss://`, in PEM; by default those of the system.
    pub ca_file: Option<PathBuf>,
    /// How many calls may be in flight; further calls fail at once.
    pub in_flight_max: usize,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(1),
            prefix: "catraca:".to_owned(),
            ca_file: None,
            in_flight_max: 4096,
        }
    }
}

/// Refuses a prefix with `{`: Redis Cluster would take it for the hash tag of all keys.
pub(super) fn check_prefix(prefix: &str) -> Result<(), ConnectError> {
    if prefix.len() <= 64 && prefix.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'{') {
        return Ok(());
    }
    let why =
        format!("the prefix {prefix:?} must be at most 64 visible ASCII characters without {{");
    Err(ConnectError::Url(why))
}
