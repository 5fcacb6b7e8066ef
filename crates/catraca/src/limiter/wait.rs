//! Waiting until a check passes, for jobs that may be late.

use std::time::{Duration, Instant};

use catraca_core::decision::Decision;
use catraca_core::request::Check;
use tokio::time::sleep;

use super::Limiter;
use crate::error::Error;

/// Checks, and waits until the check passes: exactly as long as each denial announces.
///
/// Returns the denial if the check cannot pass before the deadline, without waiting for it, or if
/// waiting never helps. A denied check charges nothing, unless the policy has `count_denied`; but
/// it starts the policy's `block`, so do not wait at a policy that has one.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use catraca::limiter::check_until_ready;
/// use catraca::{Catalog, Check, Engine};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let catalog = Catalog::parse("[policy.mail]\n by = ['provider']\n window = '1 per 20ms'")?;
/// let engine = Engine::new(catalog);
/// let check = Check::new("mail", [("provider", "example.org")]);
/// let deadline = Instant::now() + Duration::from_secs(60);
/// assert!(check_until_ready(&engine, &check, deadline).await?.allowed);
/// assert!(check_until_ready(&engine, &check, deadline).await?.allowed); // 20 ms later
/// # Ok(())
/// # }
/// ```
pub async fn check_until_ready(
    limiter: &impl Limiter,
    check: &Check<'_>,
    deadline: impl Into<Instant>,
) -> Result<Decision, Error> {
    let deadline = deadline.into();
    loop {
        let decision = limiter.check(check).await?;
        let Some(wait) = decision.retry_after.filter(|_| !decision.allowed) else {
            return Ok(decision);
        };
        let wait = Duration::from_micros(wait.micros().unsigned_abs());
        // The clock of the runtime, which is virtual in tests.
        let now = tokio::time::Instant::now().into_std();
        let passes_in_time = now.checked_add(wait).is_some_and(|end| end <= deadline);
        if !passes_in_time {
            return Ok(decision);
        }
        sleep(wait).await;
    }
}
