//! Calls the engine with the outcome of a proxied request, and again while the store is
//! unavailable: a short outage must not make outcomes free.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use catraca::core::policy::Name;
use catraca::settlement::{SettleState, Settlement};
use catraca::{AppError, CheckRef, Error, Outcome, Settle};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};
use tracing::error;

use crate::context::ServerContext;

/// The most settles that wait for the store, each with its outcome.
const RETRIES_MAX: usize = 1_000;
/// The pause before the first repetition.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What is settled.
pub struct SettleCall {
    /// What all front ends share.
    pub server: Arc<ServerContext>,
    /// The namespace of the check.
    pub namespace: Name,
    /// The ticket of the check.
    pub ticket: String,
    /// What the rules read.
    pub outcome: Outcome,
    /// When the check expires. Absent if it is not known: then the call is not repeated.
    pub expires: Option<Instant>,
}

/// An attempt that was not applied.
enum SettleFailure {
    /// The store may take it later.
    Unavailable(String),
    /// It will not be applied.
    Final(String),
}

impl SettleCall {
    /// Settles the check. If the store is unavailable, the call goes on as a task, and its result
    /// is not known here.
    pub async fn run(self) -> Option<Settlement> {
        match self.attempt().await {
            Ok(settlement) => Some(settlement),
            Err(SettleFailure::Final(why)) => {
                report_failure(&self.server, &why);
                None
            }
            Err(SettleFailure::Unavailable(why)) => {
                self.repeat_later(why);
                None
            }
        }
    }

    async fn attempt(&self) -> Result<Settlement, SettleFailure> {
        let check = CheckRef::Ticket(&self.ticket);
        let call = Settle { namespace: &self.namespace, check, outcome: &self.outcome };
        match self.server.app.settle(&call).await {
            Ok(answer) if answer.settlement.state == SettleState::Expired => {
                Err(SettleFailure::Final("its check has expired".to_owned()))
            }
            Ok(answer) => Ok(answer.settlement),
            Err(AppError::Call(Error::Store(error))) if error.is_transient() => {
                Err(SettleFailure::Unavailable(error.to_string()))
            }
            Err(error) => Err(SettleFailure::Final(error.to_string())),
        }
    }

    fn repeat_later(self, why: String) {
        let server = Arc::clone(&self.server);
        let Some(expires) = self.expires else { return report_failure(&server, &why) };
        let Some(retry) = SettleRetry::begin(&server.proxy_metrics.settle_retries) else {
            return report_failure(&server, &why);
        };
        let failure = UnfinishedSettle { server, why: Some(why) };
        // The server has stopped if there is none.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            let _retry = retry;
            // As a whole, so that its destructor runs with the task.
            let mut failure = failure;
            let attempts = repeat(Instant::now(), expires, sleep_until, || self.attempt());
            let result = attempts.await;
            failure.why = result.err();
            drop(failure);
        });
    }
}

/// Repeats an attempt, with longer and longer pauses, until it ends or the check has expired.
/// Returns why it was not applied.
async fn repeat<T, S: Future<Output = ()>, A: Future<Output = Result<T, SettleFailure>>>(
    mut last: Instant,
    expires: Instant,
    sleep_until: impl Fn(Instant) -> S,
    mut attempt: impl FnMut() -> A,
) -> Result<T, String> {
    let mut pause = PAUSE;
    loop {
        // An attempt may take longer than the pause.
        let next = (last + pause).max(Instant::now()).min(expires);
        sleep_until(next).await;
        match attempt().await {
            Ok(result) => return Ok(result),
            Err(SettleFailure::Final(why)) => return Err(why),
            Err(SettleFailure::Unavailable(why)) if next >= expires => return Err(why),
            Err(SettleFailure::Unavailable(_)) => pause = (pause * 2).min(PAUSE_MAX),
        }
        last = next;
    }
}

/// Counts a settle that waits for the store until it is dropped.
struct SettleRetry(Arc<AtomicUsize>);

impl SettleRetry {
    fn begin(count: &Arc<AtomicUsize>) -> Option<Self> {
        if count.fetch_add(1, Ordering::Relaxed) >= RETRIES_MAX {
            count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Self(Arc::clone(count)))
    }
}

impl Drop for SettleRetry {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reports a settle that was not applied, also if the server stops before it is.
struct UnfinishedSettle {
    server: Arc<ServerContext>,
    /// Why; absent once it was applied.
    why: Option<String>,
}

impl Drop for UnfinishedSettle {
    fn drop(&mut self) {
        if let Some(why) = &self.why {
            report_failure(&self.server, why);
        }
    }
}

/// Counts a settle that was not applied, and logs the first one of every ten seconds.
pub fn report_failure(server: &ServerContext, error: &dyn Display) {
    if server.proxy_metrics.note_settle_failure() {
        error!(
            %error,
            "a proxied request could not be settled: its check keeps what it holds until `hold` \
             ends, and its bans do not start; catraca_proxy_settle_failures_total counts further \
             ones"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn unavailable() -> SettleFailure {
        SettleFailure::Unavailable("no route".to_owned())
    }

    /// Repeats so many failures, with a clock that does not wait. Returns the result, and how many
    /// milliseconds after the start the last attempt was.
    async fn repeat_after(
        hold: Duration,
        failures: usize,
        last: Result<(), SettleFailure>,
    ) -> (Result<(), String>, u128) {
        let begun = Instant::now() + Duration::from_secs(3_600);
        let at = Cell::new(begun);
        let sleep = async |until| at.set(until);
        let mut results =
            std::iter::repeat_with(|| Err(unavailable())).take(failures).chain([last]);
        let attempt = || std::future::ready(results.next().unwrap());
        let result = repeat(begun, begun + hold, sleep, attempt).await;
        (result, (at.get() - begun).as_millis())
    }

    #[tokio::test]
    async fn a_settle_is_repeated_until_the_store_is_back_or_its_check_expires() {
        let hold = Duration::from_secs(60);
        // 100 ms, twice as much each time, and then five seconds.
        let settled = repeat_after(hold, 8, Ok(())).await;
        assert_eq!(settled, (Ok(()), 100 + 200 + 400 + 800 + 1_600 + 3_200 + 3 * 5_000));
        let refused = repeat_after(hold, 1, Err(SettleFailure::Final("no".to_owned()))).await;
        assert_eq!(refused, (Err("no".to_owned()), 300));
        let lost = repeat_after(Duration::from_secs(2), 4, Err(unavailable())).await;
        assert_eq!(lost, (Err("no route".to_owned()), 2_000));
    }

    #[test]
    fn settles_that_wait_for_the_store_have_a_bound() {
        let count = Arc::default();
        let mut retries: Vec<_> =
            (0..RETRIES_MAX).map(|_| SettleRetry::begin(&count).unwrap()).collect();
        assert!(SettleRetry::begin(&count).is_none());
        retries.pop();
        assert!(SettleRetry::begin(&count).is_some());
        retries.clear();
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }
}
