//! Options of the PostgreSQL store: timeouts and limits.

use std::time::Duration;

/// The most connections of a store.
const CONNECTIONS_MAX: usize = 64;

/// Timeouts and limits of a PostgreSQL store.
///
/// ```
/// use std::time::Duration;
/// use catraca::postgres::PostgresOptions;
///
/// let deadline = Duration::from_millis(600);
/// let far = PostgresOptions { deadline, ..PostgresOptions::default() };
/// assert_eq!(far.connections, 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostgresOptions {
    /// How long a call may take; after it the store counts as unavailable.
    pub deadline: Duration,
    /// The number of connections, from 1 to 64. Calls that arrive while all of them are busy share
    /// the next transaction, so a few are enough.
    pub connections: usize,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How many calls may wait for a connection; further calls fail at once.
    pub waiting_max: usize,
    /// How often forgotten rows are deleted; absent if another node does it.
    pub sweep_every: Option<Duration>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_millis(250),
            connections: 4,
            connect_timeout: Duration::from_millis(1_500),
            waiting_max: 4_096,
            sweep_every: Some(Duration::from_secs(60)),
        }
    }
}

impl PostgresOptions {
    /// A copy with every value inside its bounds.
    pub(super) fn clamp_to_bounds(self) -> Self {
        Self {
            deadline: self.deadline.max(Duration::from_millis(1)),
            connections: self.connections.clamp(1, CONNECTIONS_MAX),
            waiting_max: self.waiting_max.max(1),
            sweep_every: self.sweep_every.map(|every| every.max(Duration::from_secs(1))),
            ..self
        }
    }
}
