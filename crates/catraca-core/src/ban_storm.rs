//! Ban-storm protection: when an upstream fails for all callers, ban rules must not ban them all.
//!
//! After as many bans as its `ban_storm` rate allows, the ban rules of a policy go to shadow mode
//! for ten minutes. The count is per policy and per node.

use std::collections::VecDeque;

use crate::rate::Rate;
use crate::time::{Span, Time};

/// How long ban rules stay in shadow mode after a storm began.
pub const SHADOW_SPAN: Span = Span::from_secs(600);

/// The recent bans of one policy on this node.
#[derive(Clone, Debug, Default)]
pub struct BanStorm {
    /// The instants of the bans within the span of the rate.
    recent: VecDeque<Time>,
    /// The end of the last storm.
    until: Option<Time>,
}

impl BanStorm {
    /// Whether the ban rules are in shadow mode.
    pub fn is_active(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Counts a ban. Returns whether it began a storm.
    pub fn record_ban(&mut self, limit: Rate, now: Time) -> bool {
        // Bans in shadow mode do not prolong the storm.
        if self.is_active(now) {
            return false;
        }
        while self.recent.front().is_some_and(|at| now.since(*at) >= limit.per) {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        // At the last ban that the rate allows, so that the next outcome finds shadow mode.
        let begins = self.recent.len() as i64 >= limit.amount;
        if begins {
            self.until = Some(now.after(SHADOW_SPAN));
            self.recent.clear();
        }
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_storm_turns_to_shadow_and_re_arms() {
        let limit = Rate { amount: 4, per: Span::from_secs(60) };
        let mut storm = BanStorm::default();
        assert!((0..3).all(|second| !storm.record_ban(limit, at(second))));
        assert!(!storm.is_active(at(3)));
        assert!(storm.record_ban(limit, at(3)), "the fourth ban is the last one");
        assert!(storm.is_active(at(3)));
        assert!(storm.is_active(at(4)));
        assert!(storm.is_active(at(602)));
        assert!(!storm.is_active(at(603)));
        assert!(!storm.record_ban(limit, at(603)));
    }

    #[test]
    fn slow_bans_never_storm() {
        let limit = Rate { amount: 4, per: Span::from_secs(60) };
        let mut storm = BanStorm::default();
        assert!((0..100).all(|turn| !storm.record_ban(limit, at(turn * 20))));
    }
}
