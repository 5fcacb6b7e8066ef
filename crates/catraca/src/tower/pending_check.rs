//! A check in progress. One that is abandoned while the limiter works on it may have been charged,
//! so it runs to its end and is settled without a status.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use catraca_core::outcome::Outcome;
use tokio::runtime::Handle;

use super::pending_settle::{run_to_end, settle};
use super::settings::{CheckInput, Settings};
use crate::error::Error;
use crate::limiter::{HeldCheck, Limiter};

/// A check that is under way. Boxed, because a type cannot name the future of a limiter.
type CheckFuture = Pin<Box<dyn Future<Output = Result<HeldCheck, Error>> + Send>>;

/// A check that runs to its end even if it is dropped after its first poll.
pub(super) struct PendingCheck<L: Limiter + 'static> {
    settings: Arc<Settings<L>>,
    future: Option<CheckFuture>,
    has_started: bool,
    /// The runtime that polled a check which had to wait. Kept, because the request may be dropped
    /// on a thread that is not of a runtime.
    runtime: Option<Handle>,
}

impl<L: Limiter + 'static> PendingCheck<L> {
    pub fn new(settings: &Arc<Settings<L>>, input: CheckInput) -> Self {
        let owned = Arc::clone(settings);
        let future = Box::pin(async move { owned.check(&input).await });
        let settings = Arc::clone(settings);
        Self { settings, future: Some(future), has_started: false, runtime: None }
    }

    pub fn settings(&self) -> &Arc<Settings<L>> {
        &self.settings
    }

    /// The decision. Must not be polled again after it is ready.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<HeldCheck, Error>> {
        self.has_started = true;
        let Some(future) = &mut self.future else { return Poll::Pending };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.future = None;
        } else if self.runtime.is_none() {
            self.runtime = Handle::try_current().ok();
        }
        polled
    }
}

impl<L: Limiter + 'static> Drop for PendingCheck<L> {
    fn drop(&mut self) {
        let Some(future) = self.future.take().filter(|_| self.has_started) else { return };
        let settings = Arc::clone(&self.settings);
        run_to_end(&self.settings.error_log, self.runtime.as_ref(), async move {
            let checked = future.await;
            if let Ok(HeldCheck { ticket: Some(ticket), .. }) = checked {
                settle(&settings, ticket, &Outcome::default()).await;
            }
        });
    }
}
