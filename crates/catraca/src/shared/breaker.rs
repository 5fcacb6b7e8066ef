//! The breaker: after a few failures in a row the store is left alone until a beat finds it well.
//!
//! Must not try by itself: only beats do, so that no caller pays for a try.

use parking_lot::Mutex;

use crate::store::StoreError;

/// Failures in a row after which the store counts as away.
const FAILURES_MAX: u32 = 3;

/// Whether the store may be asked.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    open: bool,
    in_a_row: u32,
    opened: u64,
    trouble: Option<String>,
}

impl Breaker {
    /// Nothing while the store may be asked, else why not.
    pub fn permit(&self) -> Result<(), StoreError> {
        let state = self.0.lock();
        if !state.open {
            return Ok(());
        }
        Err(StoreError::unavailable(state.trouble.as_deref().unwrap_or("it has failed").to_owned()))
    }

    /// The store did not answer.
    pub fn failed(&self, why: &str) {
        let mut state = self.0.lock();
        state.in_a_row += 1;
        if state.trouble.as_deref() != Some(why) {
            state.trouble = Some(why.to_owned());
        }
        if state.in_a_row >= FAILURES_MAX && !state.open {
            state.open = true;
            state.opened += 1;
        }
    }

    /// The store is there and must not be asked until a beat is through with it.
    pub fn hold(&self, why: &str) {
        let mut state = self.0.lock();
        if !state.open {
            (state.open, state.trouble) = (true, Some(why.to_owned()));
            state.opened += 1;
        }
    }

    /// The store answered that it cannot: it is there, and somebody should look at it.
    pub fn refused(&self, why: &str) {
        let mut state = self.0.lock();
        if !state.open {
            (state.in_a_row, state.trouble) = (0, Some(why.to_owned()));
        }
    }

    /// The store answered. One that was away is well only when a beat says so.
    pub fn succeeded(&self) {
        let mut state = self.0.lock();
        if !state.open {
            (state.in_a_row, state.trouble) = (0, None);
        }
    }

    /// A beat found the store, and it knows again what it must.
    pub fn close(&self) {
        let mut state = self.0.lock();
        if state.open || state.in_a_row > 0 {
            (state.open, state.in_a_row, state.trouble) = (false, 0, None);
        }
    }

    /// Whether the store is asked, how often it has not been, and why.
    pub fn state(&self) -> (bool, u64, Option<String>) {
        let state = self.0.lock();
        (!state.open, state.opened, state.trouble.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_failures_in_a_row_and_closes_by_a_beat_alone() {
        let breaker = Breaker::default();
        for _ in 1..FAILURES_MAX {
            breaker.failed("no route");
        }
        breaker.succeeded();
        breaker.failed("no route");
        assert!(breaker.permit().is_ok(), "not in a row");
        for _ in 0..FAILURES_MAX {
            breaker.failed("no route");
        }
        breaker.succeeded();
        let refused = breaker.permit().expect_err("a late answer does not close it");
        assert_eq!(refused.to_string(), "the store is unavailable: no route");
        breaker.failed("no route");
        assert_eq!(breaker.state(), (false, 1, Some("no route".to_owned())));
        breaker.close();
        assert_eq!(breaker.state(), (true, 1, None));
        assert!(breaker.permit().is_ok());
        breaker.hold("it is being told");
        breaker.succeeded();
        assert_eq!(breaker.state(), (false, 2, Some("it is being told".to_owned())));
        breaker.close();
        assert!(breaker.permit().is_ok());
    }
}
