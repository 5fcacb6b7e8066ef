//! The circuit breaker of a primary: after three failures in a row the primary is not called until
//! a heartbeat succeeds.
//!
//! Only heartbeats try the primary again, so that no request pays for a trial.

use parking_lot::Mutex;

use crate::store::StoreError;

/// Failures in a row that open the breaker.
const FAILURES_MAX: u32 = 3;

/// Whether a primary may be called.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<BreakerState>);

#[derive(Debug, Default)]
struct BreakerState {
    open: bool,
    consecutive_failures: u32,
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

    /// Counts a failure: the primary did not reply. Returns whether the breaker opened by that.
    pub fn on_failure(&self, why: &str) -> bool {
        let mut state = self.0.lock();
        state.consecutive_failures += 1;
        if state.last_error.as_deref() != Some(why) {
            state.last_error = Some(why.to_owned());
        }
        let opens = state.consecutive_failures >= FAILURES_MAX && !state.open;
        state.open |= opens;
        opens
    }

    /// Opens the breaker of a reachable primary, until the next heartbeat has brought it up to
    /// date. Returns whether it was closed.
    pub fn open_for_sync(&self, why: &str) -> bool {
        let mut state = self.0.lock();
        let opens = !state.open;
        if opens {
            state.open = true;
            state.last_error = Some(why.to_owned());
        }
        opens
    }

    /// The primary replied with an error: it is reachable, so the breaker stays closed, but the
    /// error is shown to operators.
    pub fn on_error_reply(&self, why: &str) {
        let mut state = self.0.lock();
        if !state.open {
            state.consecutive_failures = 0;
            state.last_error = Some(why.to_owned());
        }
    }

    /// The primary replied. An open breaker stays open: only a heartbeat closes it.
    pub fn on_success(&self) {
        let mut state = self.0.lock();
        if !state.open {
            state.consecutive_failures = 0;
            state.last_error = None;
        }
    }

    /// A heartbeat succeeded, and the primary has all blocks.
    pub fn close(&self) {
        let mut state = self.0.lock();
        if state.open || state.consecutive_failures > 0 {
            state.open = false;
            state.consecutive_failures = 0;
            state.last_error = None;
        }
    }

    pub fn is_closed(&self) -> bool {
        !self.0.lock().open
    }

    pub fn last_error(&self) -> Option<String> {
        self.0.lock().last_error.clone()
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
        let opened: Vec<bool> = (0..FAILURES_MAX).map(|_| breaker.on_failure("no route")).collect();
        assert_eq!(opened, [false, true, false], "one failure was counted before");
        breaker.on_success();
        let refused = breaker.permit().expect_err("a late reply does not close it");
        assert_eq!(refused.to_string(), "the store is unavailable: no route");
        assert!(!breaker.is_closed());
        breaker.close();
        assert_eq!((breaker.is_closed(), breaker.last_error()), (true, None));
        assert!(breaker.permit().is_ok());
        assert!(breaker.open_for_sync("blocks are being written"));
        assert!(!breaker.open_for_sync("another reason"));
        breaker.on_success();
        assert_eq!(breaker.last_error().as_deref(), Some("blocks are being written"));
        breaker.close();
        assert!(breaker.permit().is_ok());
    }
}
