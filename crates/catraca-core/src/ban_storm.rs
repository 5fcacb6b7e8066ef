//! Ban-storm protection: when an upstream fails for all callers, ban rules must not ban them all.
//!
//! After as many bans as its `ban_storm` rate allows, the ban rules of a policy go to shadow mode
//! for ten minutes. A ban is one settle, however many keys it blocks. A settle that may ban takes a
//! place before the store applies it, so that concurrent settles cannot ban more callers than the
//! rate allows. The count is per policy and per node.

use std::collections::VecDeque;

use crate::rate::Rate;
use crate::time::{Span, Time};

/// How long ban rules stay in shadow mode after a storm began.
pub const SHADOW_SPAN: Span = Span::from_secs(600);

/// The recent bans of one policy on this node, and the settles that may become bans.
#[derive(Clone, Debug, Default)]
pub struct BanStorm {
    /// The instants of the bans within the span of the rate.
    recent: VecDeque<Time>,
    /// The places of settles that the store has not answered yet.
    taken: i64,
    /// The end of the last storm.
    until: Option<Time>,
}

impl BanStorm {
    /// Whether the ban rules are in shadow mode.
    pub fn is_active(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Takes a place for a settle that may ban. Returns whether there was one; without it, the ban
    /// rules of this settle are in shadow mode.
    pub fn try_take(&mut self, limit: Rate, now: Time) -> bool {
        if self.is_active(now) {
            return false;
        }
        self.forget_old(limit, now);
        let is_free = self.recent.len() as i64 + self.taken < limit.amount;
        self.taken += i64::from(is_free);
        is_free
    }

    /// Gives a place back: its settle has not banned.
    pub fn give_back(&mut self) {
        self.taken -= 1;
    }

    /// Counts the ban of a settle that has a place, which it gives back. Returns whether the ban
    /// began a storm.
    pub fn record_ban(&mut self, limit: Rate, now: Time) -> bool {
        self.give_back();
        // A reload can have lowered the rate; bans of places from before do not prolong the storm.
        if self.is_active(now) {
            return false;
        }
        self.forget_old(limit, now);
        self.recent.push_back(now);
        // At the last ban that the rate allows, so that the next outcome finds shadow mode.
        let begins = self.recent.len() as i64 >= limit.amount;
        if begins {
            self.until = Some(now.after(SHADOW_SPAN));
            self.recent.clear();
        }
        begins
    }

    fn forget_old(&mut self, limit: Rate, now: Time) {
        while self.recent.front().is_some_and(|at| now.since(*at) >= limit.per) {
            self.recent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Rate = Rate { amount: 4, per: Span::from_secs(60) };

    fn at(seconds: i64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    /// Takes a place and bans; returns whether that began a storm.
    fn ban(storm: &mut BanStorm, now: Time) -> bool {
        assert!(storm.try_take(LIMIT, now), "no place at {now:?}");
        storm.record_ban(LIMIT, now)
    }

    #[test]
    fn a_storm_turns_to_shadow_and_re_arms() {
        let mut storm = BanStorm::default();
        assert!((0..3).all(|second| !ban(&mut storm, at(second))));
        assert!(!storm.is_active(at(3)));
        assert!(ban(&mut storm, at(3)), "the fourth ban is the last one");
        for second in [3, 4, 602] {
            assert!(storm.is_active(at(second)));
            assert!(!storm.try_take(LIMIT, at(second)));
        }
        assert!(!storm.is_active(at(603)));
        assert!(!ban(&mut storm, at(603)));
    }

    #[test]
    fn slow_bans_never_storm() {
        let mut storm = BanStorm::default();
        assert!((0..100).all(|turn| !ban(&mut storm, at(turn * 20))));
    }

    #[test]
    fn settles_that_are_not_answered_yet_have_places() {
        let mut storm = BanStorm::default();
        assert!(!ban(&mut storm, at(0)));
        assert!((0..3).all(|_| storm.try_take(LIMIT, at(1))));
        assert!(!storm.try_take(LIMIT, at(1)), "one ban and three that may become bans");
        assert!(!storm.is_active(at(1)));
        storm.give_back();
        assert!(storm.try_take(LIMIT, at(1)));
        assert_eq!([1; 3].map(|second| storm.record_ban(LIMIT, at(second))), [false, false, true]);
        assert!(storm.is_active(at(1)));
    }

    #[test]
    fn a_lower_rate_counts_for_places_from_before() {
        let mut storm = BanStorm::default();
        assert!((0..3).all(|_| storm.try_take(LIMIT, at(0))));
        let lower = Rate { amount: 1, ..LIMIT };
        assert_eq!([0; 3].map(|now| storm.record_ban(lower, at(now))), [true, false, false]);
        assert!(!storm.try_take(lower, at(599)) && storm.try_take(lower, at(600)));
    }
}
