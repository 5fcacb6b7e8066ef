//! The circuit breaker: after three failures in a row the store is not called until a heartbeat
//! succeeds.
//!
//! Only heartbeats try the store again, so that no request pays for a trial.

use parking_lot::Mutex;

use crate::store::StoreError;

/// Failures in a row that open the breaker.
const FAILURES_MAX: u32 = 3;

/// Whether the store may be called.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<BreakerState>);

#[derive(Debug, Default)]
struct BreakerState {
    open: bool,
    consecutive_failures: u32,
    opened: u64,
    last_error: Option<String>,
}

impl Breaker {
    /// An error while the breaker is open.
    pub fn permit(&self) -> Result<(), StoreError> {
        let state = self.0.lock();
        if !state.open {
            return Ok(());
        }
        Err(StoreError::unavailable(state.last_error.as_deref().unwrap_or("no reply").to_owned()))
    }

    /// Counts a failure: the store did not reply.
    pub fn on_failure(&self, why: &str) {
        let mut state = self.0.lock();
        state.consecutive_failures += 1;
        if state.last_error.as_deref() != Some(why) {
            state.last_error = Some(why.to_owned());
        }
        if state.consecutive_failures >= FAILURES_MAX && !state.open {
            state.open = true;
            state.opened += 1;
        }
    }

    /// Opens the breaker of a reachable store, until the next heartbeat has brought it up to date.
    pub fn open_for_sync(&self, why: &str) {
        let mut state = self.0.lock();
        if !state.open {
            state.open = true;
            state.last_error = Some(why.to_owned());
            state.opened += 1;
        }
    }

    /// The store replied with an error: it is reachable, so the breaker stays closed, but the error
    /// is shown to operators.
    pub fn on_error_reply(&self, why: &str) {
        let mut state = self.0.lock();
        if !state.open {
            state.consecutive_failures = 0;
            state.last_error = Some(why.to_owned());
        }
    }

    /// The store replied. An open breaker stays open: only a heartbeat closes it.
    pub fn on_success(&self) {
        let mut state = self.0.lock();
        if !state.open {
            state.consecutive_failures = 0;
            state.last_error = None;
        }
    }

    /// A heartbeat succeeded, and the store has all blocks.
    pub fn close(&self) {
        let mut state = self.0.lock();
        if state.open || state.consecutive_failures > 0 {
            state.open = false;
            state.consecutive_failures = 0;
            state.last_error = None;
        }
    }

    /// Whether the breaker is closed, how often it has opened, and the last error.
    pub fn state(&self) -> (bool, u64, Option<String>) {
        let state = self.0.lock();
        (!state.open, state.opened, state.last_error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_failures_in_a_row_and_closes_by_a_beat_alone() {
        let breaker = Breaker::default();
        for _ in 1..FAILURES_MAX {
            breaker.on_failure("no route");
        }
        breaker.on_success();
        breaker.on_failure("no route");
        assert!(breaker.permit().is_ok(), "not in a row");
        for _ in 0..FAILURES_MAX {
            breaker.on_failure("no route");
        }
        breaker.on_success();
        let refused = breaker.permit().expect_err("a late reply does not close it");
        assert_eq!(refused.to_string(), "the store is unavailable: no route");
        breaker.on_failure("no route");
        assert_eq!(breaker.state(), (false, 1, Some("no route".to_owned())));
        breaker.close();
        assert_eq!(breaker.state(), (true, 1, None));
        assert!(breaker.permit().is_ok());
        breaker.open_for_sync("blocks are being written");
        breaker.on_success();
        assert_eq!(breaker.state(), (false, 2, Some("blocks are being written".to_owned())));
        breaker.close();
        assert!(breaker.permit().is_ok());
    }
}
