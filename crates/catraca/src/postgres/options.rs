//! The bounds of the PostgreSQL store.
//!
//! Must not let anything wait or grow without an end.

use std::time::Duration;

/// No store has more connections than this.
const CONNECTIONS_MAX: usize = 64;

/// How long calls may take, and how much is open or waits at a time.
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
    /// The longest that a call may take; then it is unavailable.
    pub deadline: Duration,
    /// Connections, from 1 to 64. Calls that come while all of them are busy share the next
    /// transaction, so a few are enough.
    pub connections: usize,
    /// The longest that making a connection may take.
    pub connect_timeout: Duration,
    /// Calls that may wait at a time; more are unavailable at once.
    pub waiting_max: usize,
    /// How often rows whose time is over are dropped; absent if another node does it.
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
    /// With every number in its range.
    pub(super) fn sound(self) -> Self {
        Self {
            deadline: self.deadline.max(Duration::from_millis(1)),
            connections: self.connections.clamp(1, CONNECTIONS_MAX),
            waiting_max: self.waiting_max.max(1),
            sweep_every: self.sweep_every.map(|every| every.max(Duration::from_secs(1))),
            ..self
        }
    }
}
