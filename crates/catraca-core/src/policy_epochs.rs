//! Policy epochs: the instant at which each policy was last reset for all keys.
//!
//! A stored key is a digest, so no store can list the keys of a policy. A reset of a policy
//! therefore changes its keys: the epoch becomes part of the digest. State under the old keys has
//! no effect any more and expires by itself. An epoch never goes back, because an older one would
//! make old state count again (docs/adr/0004).

use std::collections::BTreeMap;

use crate::policy::Name;
use crate::time::{Span, Time};

/// The epoch of every policy that was reset for all keys. It applies to every namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyEpochs(BTreeMap<Name, Time>);

impl PolicyEpochs {
    /// The epoch of a policy; absent if it was never reset for all keys.
    #[inline]
    pub fn epoch(&self, policy: &str) -> Option<Time> {
        // Called for every row of every decision, and most installations have no epochs.
        if self.0.is_empty() { None } else { self.0.get(policy).copied() }
    }

    /// The epoch of a reset at `now`: `now`, or one microsecond after the last epoch if the clock
    /// was set back.
    pub fn next_epoch(&self, policy: &str, now: Time) -> Time {
        let after = |last: Time| now.max(last.after(Span::from_micros(1)));
        self.epoch(policy).map_or(now, after)
    }

    /// Sets the epoch of a policy, unless a later one is known.
    pub fn advance(&mut self, policy: &str, epoch: Time) {
        let known = self.0.entry(policy.into()).or_insert(epoch);
        *known = epoch.max(*known);
    }

    /// Merges the epochs of another node or of the records; the later epoch of each policy wins.
    pub fn merge(&mut self, other: &Self) {
        for (policy, epoch) in &other.0 {
            self.advance(policy, *epoch);
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
        let mut epochs = PolicyEpochs::default();
        assert_eq!(epochs.epoch("login"), None);
        epochs.advance("login", at(7));
        epochs.advance("login", at(5));
        assert_eq!(epochs.epoch("login"), Some(at(7)));
        assert_eq!(epochs.next_epoch("login", at(3)), at(8), "a clock that went back");
        assert_eq!(epochs.next_epoch("login", at(9)), at(9));
    }

    #[test]
    fn an_epoch_is_of_one_policy() {
        let mut epochs = PolicyEpochs::default();
        epochs.advance("login", at(7));
        assert_eq!(epochs.epoch("search"), None);
    }

    #[test]
    fn of_two_that_are_merged_the_later_epoch_stays() {
        let mut here = PolicyEpochs::default();
        let mut there = PolicyEpochs::default();
        here.advance("login", at(7));
        here.advance("search", at(7));
        there.advance("login", at(9));
        there.advance("search", at(5));
        here.merge(&there);
        assert_eq!(here.epoch("login"), Some(at(9)));
        assert_eq!(here.epoch("search"), Some(at(7)));
    }
}
