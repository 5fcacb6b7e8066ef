//! When the slot map of a cluster is read again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How often the slot map is read again while all connections are up.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);
/// The same while a connection is down: a failover changes the map.
const REFRESH_INTERVAL_DOWN: Duration = Duration::from_millis(100);

/// The pause between two reads of the slot map.
#[derive(Default)]
pub(super) struct RefreshTimer {
    /// A call noticed that the map is out of date.
    pub stale: Notify,
    /// A connection went down. Shared with all connections.
    pub went_down: Arc<Notify>,
}

impl RefreshTimer {
    /// Waits until the map must be read again. A connection that goes down makes the pause short,
    /// counted from its start, so that one that comes and goes does not make reads more frequent.
    pub async fn wait(&self, is_down: impl Fn() -> bool) {
        let start = Instant::now();
        let mut interval = REFRESH_INTERVAL;
        if is_down() {
            interval = REFRESH_INTERVAL_DOWN;
        }
        loop {
            tokio::select! {
                () = sleep_until(start + interval) => return,
                () = self.stale.notified() => return,
                () = self.went_down.notified() => interval = REFRESH_INTERVAL_DOWN,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long the timer waits, in virtual time, if `disturb` is called after 300 ms.
    async fn pause(timer: &RefreshTimer, is_down: bool, disturb: impl Fn(&RefreshTimer)) -> u128 {
        let start = Instant::now();
        let disturbed = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            disturb(timer);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = timer.wait(|| is_down) => {}
            () = disturbed => {}
        }
        start.elapsed().as_millis()
    }

    #[tokio::test(start_paused = true)]
    async fn the_map_is_read_every_two_seconds_and_more_often_while_a_connection_is_down() {
        let timer = RefreshTimer::default();
        assert_eq!(pause(&timer, false, |_| ()).await, 2_000);
        assert_eq!(pause(&timer, true, |_| ()).await, 100);
        assert_eq!(pause(&timer, false, |timer| timer.stale.notify_one()).await, 300);
    }

    /// Regression: the pause was chosen before a connection went down, so its keys were degraded
    /// until the end of the long one.
    #[tokio::test(start_paused = true)]
    async fn a_connection_that_goes_down_ends_the_long_pause() {
        let timer = RefreshTimer::default();
        assert_eq!(pause(&timer, false, |timer| timer.went_down.notify_one()).await, 300);
        // It went down while the map was being read.
        timer.went_down.notify_one();
        assert_eq!(pause(&timer, false, |_| ()).await, 100);
    }
}
