//! A lower bound of the offset between a server's clock and this node's clock.
//!
//! Every call carries the latest instant, by the server's clock, at which it may be applied. It is
//! computed with the smallest offset that is possible, so it is never later than the caller's own
//! deadline: a call that the caller gave up is not applied afterwards, even if it was delayed. If
//! the bound is too low, the server refuses a call that was in time; the refusal contains the
//! server's clock, so that the bound is corrected and the call can be sent again.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};

use redis::aio::ConnectionLike;
use redis::{RedisError, RedisResult};
use tokio::time::Instant;

/// The zero point of this node's instants.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The least by which a server's clock can be ahead of this node's instants, in microseconds.
pub(super) struct ClockOffset(AtomicI64);

impl ClockOffset {
    /// Asks a server for its clock.
    pub async fn measure(connection: &mut impl ConnectionLike) -> RedisResult<Self> {
        let offset = Self(AtomicI64::new(i64::MIN));
        offset.refresh(connection).await?;
        Ok(offset)
    }

    pub async fn refresh(&self, connection: &mut impl ConnectionLike) -> RedisResult<()> {
        let sent = Instant::now();
        self.observe(sent, server_clock(connection).await?);
        Ok(())
    }

    /// Takes a sample: the server's clock showed `now` (microseconds) at some moment between `sent`
    /// and this one. Keeps the tightest lower bound; a sample that contradicts it means that the
    /// server's clock was set back; the bound starts again from it.
    pub fn observe(&self, sent: Instant, now: i64) {
        let least = now - micros(Instant::now());
        let most = now - micros(sent);
        let bound = |old: i64| if old > most { least } else { old.max(least) };
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(bound(old)));
    }

    /// An instant of the server's clock, in microseconds, that is certainly not later than this
    /// instant of the node.
    pub fn to_server_time(&self, instant: Instant) -> i64 {
        micros(instant).saturating_add(self.0.load(Ordering::Relaxed))
    }
}

/// The server's clock in microseconds, if the error is the script's `LATE`: the call came after its
/// deadline and nothing was applied.
pub(super) fn late_server_clock(error: &RedisError) -> Option<i64> {
    if error.code() != Some("LATE") {
        return None;
    }
    error.detail()?.trim().parse().ok()
}

async fn server_clock(connection: &mut impl ConnectionLike) -> RedisResult<i64> {
    let (seconds, micros): (i64, i64) = redis::cmd("TIME").query_async(connection).await?;
    Ok(seconds.saturating_mul(1_000_000).saturating_add(micros))
}

/// Microseconds since [`START`].
fn micros(instant: Instant) -> i64 {
    let since = instant.saturating_duration_since(*START);
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A server whose clock is a minute ahead; messages take 2 ms or a multiple of it each way.
    #[tokio::test(start_paused = true)]
    async fn the_tightest_bound_is_kept_and_a_clock_that_was_set_is_followed() {
        LazyLock::force(&START);
        let way = Duration::from_millis(2);
        let minute = 60_000_000;
        let hour = 3_600_000_000;
        let offset = ClockOffset(AtomicI64::new(i64::MIN));
        let sample = async |out: u32, back: u32, ahead: i64| {
            let sent = Instant::now();
            tokio::time::advance(way * out).await;
            let now = micros(Instant::now()) + ahead;
            tokio::time::advance(way * back).await;
            offset.observe(sent, now);
            offset.to_server_time(Instant::now()) - micros(Instant::now())
        };
        assert_eq!(sample(1, 9, minute).await, minute - 18_000, "a lower bound");
        assert_eq!(sample(1, 1, minute).await, minute - 2_000, "a tighter one");
        assert_eq!(sample(9, 9, minute).await, minute - 2_000, "a looser one changes nothing");
        assert_eq!(sample(1, 1, hour).await, hour - 2_000, "set forward");
        assert_eq!(sample(1, 1, minute).await, minute - 2_000, "set back");
    }
}
