//! Waiting until a check passes, for jobs that may be late.

use std::time::Duration;

use catraca_core::decision::Decision;
use catraca_core::request::Check;
use tokio::time::{Instant, sleep};

use super::Limiter;
use crate::error::Error;

/// Checks, and waits until the check passes: exactly as long as each denial announces.
///
/// Returns the denial if the check cannot pass before the deadline, without waiting for it, or if
/// waiting never helps. A denied check charges nothing, unless the policy has `count_denied`; but
/// it starts the policy's `block`, so do not wait at a policy that has one.
pub async fn check_until_ready(
    limiter: &impl Limiter,
    check: &Check<'_>,
    deadline: Instant,
) -> Result<Decision, Error> {
    loop {
        let decision = limiter.check(check).await?;
        let Some(wait) = decision.retry_after.filter(|_| !decision.allowed) else {
            return Ok(decision);
        };
        let wait = Duration::from_micros(wait.micros().unsigned_abs());
        let passes_in_time = Instant::now().checked_add(wait).is_some_and(|end| end <= deadline);
        if !passes_in_time {
            return Ok(decision);
        }
        sleep(wait).await;
    }
}
