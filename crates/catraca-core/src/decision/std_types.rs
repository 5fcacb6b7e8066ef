//! The times of a decision as types of the standard library, for programs that embed the engine.

#![expect(clippy::disallowed_types, reason = "users of the library have the types of std")]

use std::time::{Duration, SystemTime};

use super::{Decision, DecisionRow, WindowQuota};

impl Decision {
    /// How long to wait until the same check would be allowed; absent if it is allowed now, or
    /// never will be.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.map(Duration::from)
    }

    /// How long until the full quota is available and no block is active.
    pub fn reset_after(&self) -> Option<Duration> {
        self.reset_after.map(Duration::from)
    }

    /// The end of the active block; absent if there is none, or if it has no end.
    pub fn blocked_until(&self) -> Option<SystemTime> {
        self.blocked_until.map(SystemTime::from)
    }

    /// The instant of the decision.
    pub fn decided_at(&self) -> SystemTime {
        self.at.into()
    }
}

impl DecisionRow {
    /// The span of the limit: the window, or how long an empty bucket takes to fill.
    pub fn window(&self) -> Option<Duration> {
        self.window.map(Duration::from)
    }

    /// How long to wait until this row would fit.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.map(Duration::from)
    }

    /// How long until the full quota is available and no block is active.
    pub fn reset_after(&self) -> Option<Duration> {
        self.reset_after.map(Duration::from)
    }

    /// The end of the active block; absent if there is none, or if it has no end.
    pub fn blocked_until(&self) -> Option<SystemTime> {
        self.blocked_until.map(SystemTime::from)
    }
}

impl WindowQuota {
    /// The length of the window.
    pub fn window(&self) -> Duration {
        self.span.into()
    }

    /// How long to wait until this window would fit and no block is active; absent if it fits now,
    /// or never will.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.map(Duration::from)
    }

    /// How long until the window is empty and no block is active.
    pub fn reset_after(&self) -> Option<Duration> {
        self.reset_after.map(Duration::from)
    }
}
