//! What callers of locks observed: two holders of one name, and fences that fall.
//!
//! A holder believes that it holds a name from the grant that it received until it sends the
//! release, or until the TTL has passed since it sent the request.

use std::collections::BTreeMap;
use std::time::Duration;

/// A grant, as its holder observed it. Instants are since the start of the load.
#[derive(Clone, Debug)]
pub struct ObservedGrant {
    pub name: String,
    pub sent: Duration,
    pub received: Duration,
    /// When the holder stopped to believe that it holds the name.
    pub until: Duration,
    pub fence: u64,
}

/// The calls of one kind of lock.
#[derive(Debug, Default)]
pub struct LockHistory {
    pub grants: Vec<ObservedGrant>,
    /// Requests that were refused because of the store, or not answered.
    pub refused: Vec<RefusedLock>,
}

/// A request for a lock that failed, though the name is free or not known.
#[derive(Clone, Copy, Debug)]
pub struct RefusedLock {
    pub node: usize,
    pub at: Duration,
    pub is_answered: bool,
}

/// What is wrong with a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockFindings {
    /// Grants that were received while another holder believed that it holds the name.
    pub double: usize,
    /// Grants whose request was sent after a grant with a higher fence had been received.
    pub falling: usize,
}

impl LockHistory {
    pub fn findings(&self) -> LockFindings {
        let mut names: BTreeMap<&str, Vec<&ObservedGrant>> = BTreeMap::new();
        for grant in &self.grants {
            names.entry(&grant.name).or_default().push(grant);
        }
        let mut findings = LockFindings::default();
        for grants in names.values_mut() {
            grants.sort_by_key(|grant| grant.received);
            let mut held_until = Duration::ZERO;
            for (index, grant) in grants.iter().enumerate() {
                findings.double += usize::from(grant.received < held_until);
                held_until = held_until.max(grant.until);
                let earlier = grants[..index].iter().filter(|other| other.received < grant.sent);
                let highest = earlier.map(|other| other.fence).max().unwrap_or_default();
                findings.falling += usize::from(grant.fence <= highest);
            }
        }
        findings
    }

    /// How many requests the store refused, since an instant.
    pub fn refused_since(&self, instant: Duration) -> usize {
        self.refused.iter().filter(|refused| refused.at >= instant).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(sent: u64, received: u64, until: u64, fence: u64) -> ObservedGrant {
        let [sent, received, until] = [sent, received, until].map(Duration::from_millis);
        ObservedGrant { name: "a".to_owned(), sent, received, until, fence }
    }

    fn findings(grants: Vec<ObservedGrant>) -> (usize, usize) {
        let found = LockHistory { grants, refused: Vec::new() }.findings();
        (found.double, found.falling)
    }

    #[test]
    fn holders_one_after_the_other_are_correct() {
        assert_eq!(findings(vec![grant(1, 2, 10, 5), grant(9, 10, 20, 6)]), (0, 0));
    }

    #[test]
    fn two_holders_at_once_are_found_in_any_order_of_the_list() {
        assert_eq!(findings(vec![grant(4, 5, 20, 6), grant(1, 2, 10, 5)]), (1, 0));
    }

    #[test]
    fn a_fence_that_falls_is_found() {
        assert_eq!(findings(vec![grant(1, 2, 3, 6), grant(4, 5, 6, 5)]), (0, 1));
        // Requests that overlap may be answered in any order.
        assert_eq!(findings(vec![grant(1, 4, 5, 6), grant(2, 6, 7, 5)]), (0, 0));
    }
}
