//! The ban storm: when an upstream rejects everybody, ban rules must not ban everybody.
//!
//! Beyond a rate of bans a policy's rules turn to shadow for a while and re-arm by themselves.
//! Per policy and node; must not be shared state.

use std::collections::VecDeque;

use crate::rate::Rate;
use crate::time::{Span, Time};

/// How long ban rules stay in shadow after a storm.
pub const CALM: Span = Span::from_secs(600);

/// The bans of one policy on this node.
#[derive(Clone, Debug, Default)]
pub struct Storm {
    recent: VecDeque<Time>,
    until: Option<Time>,
}

impl Storm {
    /// Whether the rules are in shadow.
    pub fn rages(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Counts a ban; says whether it was the one that began a storm.
    pub fn count(&mut self, limit: Rate, now: Time) -> bool {
        if self.rages(now) {
            return false;
        }
        while self.recent.front().is_some_and(|at| now.since(*at) >= limit.per) {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        let begins = self.recent.len() as i64 > limit.amount;
        if begins {
            self.until = Some(now.after(CALM));
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
        let limit = Rate { amount: 3, per: Span::from_secs(60) };
        let mut storm = Storm::default();
        assert!((0..3).all(|second| !storm.count(limit, at(second))));
        assert!(!storm.rages(at(3)));
        assert!(storm.count(limit, at(3)));
        assert!(storm.rages(at(4)));
        assert!(storm.rages(at(602)));
        assert!(!storm.rages(at(603)));
        assert!(!storm.count(limit, at(603)));
    }

    #[test]
    fn slow_bans_never_storm() {
        let limit = Rate { amount: 3, per: Span::from_secs(60) };
        let mut storm = Storm::default();
        assert!((0..100).all(|turn| !storm.count(limit, at(turn * 20))));
    }
}
