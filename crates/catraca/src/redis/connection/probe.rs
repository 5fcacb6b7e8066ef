//! How a connection is judged and replaced: its probe, the errors that break it, and the spread of
//! attempts to connect.

use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use tokio::time::timeout;

use super::super::failure::unavailable_reason;
use super::LiveConnection;

/// Whether the connection must be replaced after this error. A server that became a replica
/// (READONLY) answers, but the primary is another one now.
pub(super) fn breaks_connection(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::Server(ServerErrorKind::ReadOnly)
    )
}

/// Asks the server for its time: proves that it answers, and updates the clock offset.
pub(super) async fn probe(mut live: LiveConnection, longest: Duration) -> Result<(), String> {
    let asked = live.server_info.clock_offset.refresh(&mut live.connection);
    match timeout(longest, asked).await {
        Ok(Err(error)) if breaks_connection(&error) => {
            Err(unavailable_reason(&live.server_info.server, &error))
        }
        // Any other error is an answer, too.
        Ok(_) => Ok(()),
        Err(_) => {
            let millis = longest.as_millis();
            Err(format!("Redis does not respond: no answer to a probe within {millis} ms"))
        }
    }
}

/// A factor from 0.75 to 1.25, so that nodes do not all reconnect at the same moment.
pub(super) fn jitter() -> f64 {
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    0.75 + f64::from(random) / f64::from(u32::MAX) / 2.0
}
