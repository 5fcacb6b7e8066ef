//! Whole resets: since when a policy counts anew for everybody.
//!
//! A stored key does not tell its policy, so nobody can look for all keys of one. What begins anew
//! gets other keys instead: the instant of the last reset, the *epoch*, becomes part of them. What
//! lies under the keys of before decides nothing any more and lapses by itself. Must not go back:
//! an older epoch would bring back what was forgotten.

use std::collections::BTreeMap;

use crate::policy::Name;
use crate::time::{Span, Time};

/// The epoch of every policy that was reset as a whole, in every namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resets(BTreeMap<Name, Time>);

impl Resets {
    /// Since when a policy counts; absent if it was never reset as a whole.
    #[inline]
    pub fn epoch(&self, policy: &str) -> Option<Time> {
        // Most have none, and this is on the way of every decision.
        if self.0.is_empty() { None } else { self.0.get(policy).copied() }
    }

    /// The epoch that a reset begins: now, or just after the last one if the clock went back.
    pub fn next(&self, policy: &str, now: Time) -> Time {
        let after = |last: Time| now.max(last.after(Span::from_micros(1)));
        self.epoch(policy).map_or(now, after)
    }

    /// Takes note of a reset; one that is older than what is known changes nothing.
    pub fn note(&mut self, policy: &str, epoch: Time) {
        let known = self.0.entry(policy.into()).or_insert(epoch);
        *known = epoch.max(*known);
    }

    /// Takes note of all that another knows.
    pub fn merge(&mut self, other: &Self) {
        for (policy, epoch) in &other.0 {
            self.note(policy, *epoch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn an_epoch_never_goes_back() {
        let mut resets = Resets::default();
        assert_eq!(resets.epoch("login"), None);
        resets.note("login", at(7));
        resets.note("login", at(5));
        assert_eq!(resets.epoch("login"), Some(at(7)));
        assert_eq!(resets.next("login", at(3)), at(8), "a clock that went back");
        assert_eq!(resets.next("login", at(9)), at(9));
    }

    #[test]
    fn an_epoch_is_of_one_policy() {
        let mut resets = Resets::default();
        resets.note("login", at(7));
        assert_eq!(resets.epoch("search"), None);
    }

    #[test]
    fn of_two_that_are_merged_the_later_epoch_stays() {
        let (mut here, mut there) = (Resets::default(), Resets::default());
        here.note("login", at(7));
        here.note("search", at(7));
        there.note("login", at(9));
        there.note("search", at(5));
        here.merge(&there);
        assert_eq!(here.epoch("login"), Some(at(9)));
        assert_eq!(here.epoch("search"), Some(at(7)));
    }
}
