//! Buckets that tiers with other sizes or refills share (docs/adr/0025).
//!
//! Windows of other lengths have counters of their own instead, since none of them could serve
//! the others.

use super::{Bucket, BucketTerms};
use crate::cell::second_after;
use crate::limit::Limit;

/// The buckets of the other tiers that share a counter. The counter is forgotten only when it is
/// full for each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedBuckets(Vec<BucketTerms>);

impl SharedBuckets {
    /// The buckets that differ from `own`; `None` if there are none.
    pub fn new<'l>(own: &Limit, others: impl Iterator<Item = &'l Limit>) -> Option<Self> {
        let Limit::Bucket(own) = own else { return None };
        let mut found: Vec<BucketTerms> = Vec::new();
        for other in others {
            if let Limit::Bucket(terms) = other
                && terms != own
                && !found.contains(terms)
            {
                found.push(*terms);
            }
        }
        (!found.is_empty()).then_some(Self(found))
    }

    /// Their terms.
    pub fn terms(&self) -> &[BucketTerms] {
        &self.0
    }
}

impl Bucket {
    /// Moves the instant at which the bucket is forgotten to where it is full for all tiers that
    /// share it. Call it after [`Self::take`], which computes that instant for its own terms.
    #[inline]
    pub fn keep_for(&mut self, shared: Option<&SharedBuckets>) {
        for terms in shared.map_or(&[][..], SharedBuckets::terms) {
            // The remainder counts under its own refill only, and debt down to the floor.
            let tokens = self.tokens.max(terms.floor());
            let full = Self { tokens, rem: 0, ..*self }.full_at(terms);
            self.forget = self.forget.max(second_after(full));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    #[test]
    fn other_buckets_are_listed_once() {
        let bucket = |size| BucketTerms { size, tokens: 1, period: 1_000_000 };
        let [small, large] = [3, 9].map(|size| Limit::Bucket(bucket(size)));
        let shared = SharedBuckets::new(&small, [&large, &small, &large].into_iter()).unwrap();
        assert_eq!(shared.terms(), &[bucket(9)]);
        assert_eq!(SharedBuckets::new(&small, [&small].into_iter()), None);
    }

    /// Below the floor of another tier, which counts the balance as its floor.
    #[test]
    fn a_debt_below_the_floor_of_a_tier_is_remembered_as_that_floor() {
        let terms = BucketTerms { size: 9, tokens: 1_000, period: 1_000_000 };
        let shared = SharedBuckets(vec![terms]);
        let forget_at = |tokens| {
            let mut bucket = Bucket::full(&terms, Time::ZERO);
            bucket.tokens = tokens;
            bucket.keep_for(Some(&shared));
            bucket.forget
        };
        let at_floor = forget_at(terms.floor());
        assert_eq!(forget_at(terms.floor() - 100_000), at_floor);
        assert!(forget_at(terms.floor() + 100_000) < at_floor);
    }
}
