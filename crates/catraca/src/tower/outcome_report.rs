//! What the handler of a request knows about its outcome, and the response does not show.

use std::sync::Arc;

use catraca_core::outcome::Outcome;
use parking_lot::Mutex;

/// Reports the outcome of a request from inside its handler. It is an extension of the request, and
/// clones belong to the same request. Reports count until the body of the response ends, so a
/// stream can report its cost with its last part.
#[derive(Clone, Debug, Default)]
pub struct OutcomeReport(Arc<Mutex<ReportedValues>>);

#[derive(Clone, Copy, Debug, Default)]
struct ReportedValues {
    cost: Option<i64>,
    status: Option<u16>,
}

impl OutcomeReport {
    /// Reports the units that the request has used, for policies with `cost = "reported"`.
    pub fn cost(&self, units: i64) {
        self.0.lock().cost = Some(units);
    }

    /// Replaces the status in the outcome, for a response that has another one on the wire, such as
    /// a failed login with status 200.
    pub fn status(&self, status: u16) {
        self.0.lock().status = Some(status);
    }

    pub(super) fn apply(&self, outcome: &mut Outcome) {
        let reported = *self.0.lock();
        outcome.cost = reported.cost.or(outcome.cost);
        outcome.status = reported.status.or(outcome.status);
    }
}
