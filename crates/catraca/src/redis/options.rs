//! How a Redis store behaves. Must not hold what the URL says: servers and credentials.

use std::path::PathBuf;
use std::time::Duration;

/// How a Redis store behaves.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// The longest that any call waits for an answer.
    pub deadline: Duration,
    /// The longest that making a connection may take.
    pub connect_timeout: Duration,
    /// What every key begins with. Stores of one server that have nothing to do with each other
    /// need other prefixes, or other databases.
    pub prefix: String,
    /// Certificates to trust with `rediss://`, in PEM; without it those of the system.
    pub ca_file: Option<PathBuf>,
    /// Calls on their way at one time; one more is refused at once.
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
