//! A timeout that starts again with every step forward, and costs a timer only when a step has to
//! be waited for.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Fires when nothing happened for some time. One that was not started has a time of zero.
pub struct IdleTimer {
    limit: Duration,
    last: Instant,
    /// The timer; made at the first wait.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl IdleTimer {
    /// Starts now.
    pub fn new(limit: Duration) -> Self {
        Self { limit, last: Instant::now(), sleep: None }
    }

    /// Starts again, with another time.
    pub fn restart(&mut self, limit: Duration) {
        self.limit = limit;
        self.last = Instant::now();
    }

    /// Notes a step forward, from which the time counts again.
    pub fn on_progress(&mut self) {
        self.last = Instant::now();
    }

    /// Ready when the time has passed since this step.
    pub fn poll_expired_since(&mut self, last: Instant, cx: &mut Context<'_>) -> Poll<()> {
        self.last = last;
        self.poll_expired(cx)
    }

    /// Ready when the time has passed without a step.
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let until = self.last + self.limit;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if sleep.deadline() > until {
            // The time before `restart` was longer.
            sleep.as_mut().reset(until);
        }
        // A step does not move the timer: when it fires, it is set to what is left.
        while sleep.as_mut().poll(cx).is_ready() {
            if sleep.deadline() >= until {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(until);
        }
        Poll::Pending
    }
}

impl Default for IdleTimer {
    fn default() -> Self {
        Self::new(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn a_step_starts_the_time_again() {
        let limit = Duration::from_secs(3_600);
        let long_ago = Instant::now() - 2 * limit;
        let mut expired = IdleTimer { limit, last: long_ago, sleep: None };
        poll_fn(|cx| expired.poll_expired(cx)).await;
        // Its timer has fired, but there was a step since it was set.
        let sleep = Some(Box::pin(sleep_until(long_ago)));
        let mut running = IdleTimer { limit, last: long_ago, sleep };
        running.on_progress();
        let is_running = poll_fn(|cx| Poll::Ready(running.poll_expired(cx).is_pending()));
        assert!(is_running.await);
        // Its timer is set to the end of a long time, and now its time is short.
        running.restart(Duration::ZERO);
        poll_fn(|cx| running.poll_expired(cx)).await;
    }
}
