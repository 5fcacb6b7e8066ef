//! How far a server's clock is ahead of this node's: at least so much, as its answers show.
//!
//! Every call carries the latest instant of that clock at which it may still be done. By the least
//! that the clock can be ahead, this is never after the caller's own deadline: what was given up is
//! not done later, wherever it stood meanwhile. Must not refuse for good: who is told too early
//! that it is late hears the server's clock with that, and goes again.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};

use redis::aio::ConnectionLike;
use redis::{RedisError, RedisResult};
use tokio::time::Instant;

/// What instants of this node are counted from.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// How far a server's clock is ahead of this node's count, in microseconds, at least.
pub(super) struct Ahead(AtomicI64);

impl Ahead {
    /// Asks a server for its clock.
    pub async fn of(connection: &mut impl ConnectionLike) -> RedisResult<Self> {
        let (sent, now) = (Instant::now(), clock(connection).await?);
        let ahead = Self(AtomicI64::new(i64::MIN));
        ahead.hear(sent, now);
        Ok(ahead)
    }

    /// Asks again.
    pub async fn ask(&self, connection: &mut impl ConnectionLike) -> RedisResult<()> {
        let sent = Instant::now();
        self.hear(sent, clock(connection).await?);
        Ok(())
    }

    /// Somebody who asked at `sent` just heard that it was `now` there. The most that was ever
    /// known of the least is kept, unless this answer cannot be: then that clock was set back.
    pub fn hear(&self, sent: Instant, now: i64) {
        let (least, most) = (now - micros(Instant::now()), now - micros(sent));
        let known = |known: i64| if known > most { least } else { known.max(least) };
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(known(old)));
    }

    /// The instant there that is surely not after this one here.
    pub fn there(&self, here: Instant) -> i64 {
        micros(here).saturating_add(self.0.load(Ordering::Relaxed))
    }
}

/// The server's clock, if this is how the script tells that it came too late and did nothing.
pub(super) fn late(error: &RedisError) -> Option<i64> {
    if error.code() != Some("LATE") {
        return None;
    }
    error.detail()?.trim().parse().ok()
}

async fn clock(connection: &mut impl ConnectionLike) -> RedisResult<i64> {
    let (seconds, micros): (i64, i64) = redis::cmd("TIME").query_async(connection).await?;
    Ok(seconds.saturating_mul(1_000_000).saturating_add(micros))
}

fn micros(here: Instant) -> i64 {
    let since = here.saturating_duration_since(*START);
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A server a minute ahead, and answers that take two milliseconds each way.
    #[tokio::test(start_paused = true)]
    async fn the_least_is_kept_and_a_clock_that_was_set_is_believed() {
        LazyLock::force(&START);
        let (way, minute, hour) = (Duration::from_millis(2), 60_000_000, 3_600_000_000);
        let ahead = Ahead(AtomicI64::new(i64::MIN));
        let answer = async |out: u32, back: u32, far: i64| {
            let sent = Instant::now();
            tokio::time::advance(way * out).await;
            let now = micros(Instant::now()) + far;
            tokio::time::advance(way * back).await;
            ahead.hear(sent, now);
            ahead.there(Instant::now()) - micros(Instant::now())
        };
        assert_eq!(answer(1, 9, minute).await, minute - 18_000, "at least");
        assert_eq!(answer(1, 1, minute).await, minute - 2_000, "a better answer");
        assert_eq!(answer(9, 9, minute).await, minute - 2_000, "a worse one teaches nothing");
        assert_eq!(answer(1, 1, hour).await, hour - 2_000, "set forward");
        assert_eq!(answer(1, 1, minute).await, minute - 2_000, "set back");
    }
}
