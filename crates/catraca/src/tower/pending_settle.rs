//! A settle that happens when it is dropped: at the end of a body, or when a request is abandoned.
//!
//! A body can end in four ways (read to its end, failed, dropped by the server, dropped by a
//! panic), and the future of a request in three. Dropping is the only event that all of them have,
//! so no settle is lost in one of them.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};

use bytes::Bytes;
use catraca_core::outcome::Outcome;
use http::response;
use http_body::Frame;
use tokio::runtime::Handle;

use super::error_log::ErrorLog;
use super::grpc;
use super::outcome_report::OutcomeReport;
use super::settings::Settings;
use crate::http_outcome::BodyCopy;
use crate::limiter::{HeldTicket, Limiter};
use crate::settlement::SettleState;

/// Settles a check when it is dropped. Until the head of the response is known, the outcome has no
/// status.
pub(super) struct PendingSettle {
    outcome: Outcome,
    report: OutcomeReport,
    body_copy: Option<BodyCopy>,
    reads_grpc_status: bool,
    settle: Option<SettleFn>,
}

/// Settles the check with its outcome. Boxed, so that bodies do not have the type of the limiter.
type SettleFn = Box<dyn FnOnce(Outcome) + Send + Sync>;

impl PendingSettle {
    pub fn new<L: Limiter + 'static>(
        settings: &Arc<Settings<L>>,
        ticket: HeldTicket,
        report: OutcomeReport,
    ) -> Self {
        let settings = Arc::clone(settings);
        let runtime = Handle::try_current().ok();
        let log = Arc::clone(&settings.error_log);
        let settle = move |outcome| {
            run_to_end(&log, runtime.as_ref(), async move {
                settle(&settings, ticket, &outcome).await;
            });
        };
        Self {
            outcome: Outcome::default(),
            report,
            body_copy: None,
            reads_grpc_status: false,
            settle: Some(Box::new(settle)),
        }
    }

    /// Reads the head of the response.
    pub fn on_head<L>(&mut self, settings: &Settings<L>, response: &response::Parts) {
        let source = &settings.options.outcome;
        self.outcome = source.read(response);
        self.body_copy = source.body_copy(&response.headers);
        self.reads_grpc_status = source.reads_grpc_status;
    }

    /// Reads a part of the body.
    pub fn on_frame(&mut self, frame: &Frame<Bytes>) {
        if let (Some(copy), Some(data)) = (&mut self.body_copy, frame.data_ref()) {
            copy.push(data);
        }
        if let Some(trailers) = frame.trailers_ref().filter(|_| self.reads_grpc_status) {
            self.outcome.status = grpc::outcome_status(trailers).or(self.outcome.status);
        }
    }

    /// The body has reached its end, and did not break off.
    pub fn on_end(&mut self) {
        if let Some(copy) = &mut self.body_copy {
            copy.on_end();
        }
    }
}

impl Drop for PendingSettle {
    fn drop(&mut self) {
        let Some(settle) = self.settle.take() else { return };
        let mut outcome = std::mem::take(&mut self.outcome);
        if let Some(copy) = self.body_copy.take() {
            outcome = outcome.with_body(copy.into_body());
        }
        self.report.apply(&mut outcome);
        settle(outcome);
    }
}

/// Settles a check. The caller cannot repeat it, so an error is only reported.
pub(super) async fn settle<L: Limiter>(
    settings: &Settings<L>,
    ticket: HeldTicket,
    outcome: &Outcome,
) {
    match settings.limiter.settle_held(&settings.options.namespace, ticket, outcome).await {
        Ok(settlement) if settlement.state == SettleState::Expired => {
            if !settings.has_reported_late_settle.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "a response ended after the ticket of its check, which keeps what it holds; \
                     set `hold` of the policy to the longest response"
                );
            }
        }
        Ok(_) => {}
        Err(error) => settings.error_log.on_unsettled(&error),
    }
}

/// Runs a future to its end: at once if it is ready, as a task of the runtime if it has to wait.
pub(super) fn run_to_end(
    log: &ErrorLog,
    runtime: Option<&Handle>,
    future: impl Future<Output = ()> + Send + 'static,
) {
    let mut future: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(future);
    // A body may be dropped on a thread that is not of the runtime.
    let _entered = runtime.map(Handle::enter);
    if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
        return;
    }
    match runtime {
        Some(runtime) => drop(runtime.spawn(future)),
        None => log.on_unsettled(&"its limiter has to wait, and there is no tokio runtime"),
    }
}
