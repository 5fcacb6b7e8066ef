//! One node's share of a limit, used while the shared store is unavailable.
//!
//! Shares are rounded up, so that no node's share is zero. All shares together exceed the limit by
//! less than one unit per node.

use super::{BucketTerms, EXACT_MAX, FixedTerms, InflightTerms, Limit, WindowTerms};

impl Limit {
    /// The limit divided by the number of nodes, rounded up.
    #[must_use]
    pub fn share(&self, nodes: i64) -> Self {
        let part = |limit: i64| (limit + nodes - 1) / nodes;
        match self {
            Self::Bucket(terms) => Self::Bucket(terms.share(nodes)),
            Self::Window(all) => {
                let shared = |one: &WindowTerms| WindowTerms { limit: part(one.limit), ..*one };
                Self::Window(all.iter().map(shared).collect())
            }
            Self::Fixed(terms) => Self::Fixed(FixedTerms { limit: part(terms.limit), ..*terms }),
            Self::Inflight(terms) => {
                Self::Inflight(InflightTerms { limit: part(terms.limit), ..*terms })
            }
            Self::Unlimited => Self::Unlimited,
        }
    }
}

impl BucketTerms {
    /// A smaller bucket that fills in the same time. If its longer period could not be computed
    /// exactly, the period is kept and the tokens per period are divided, rounded up.
    fn share(&self, nodes: i64) -> Self {
        let size = (self.size + nodes - 1) / nodes;
        let divisor = gcd(self.tokens, nodes);
        // `tokens / nodes` per period, in whole numbers: both sides divided by their divisor.
        let tokens = self.tokens / divisor;
        let period = self.period.checked_mul(nodes / divisor);
        let fits = |period: &i64| size.checked_mul(*period).is_some_and(|all| all <= EXACT_MAX);
        match period.filter(fits) {
            Some(period) => Self { size, tokens, period },
            None => Self { size, tokens: (self.tokens + nodes - 1) / nodes, period: self.period },
        }
    }
}

fn gcd(mut one: i64, mut other: i64) -> i64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    #[test]
    fn shares_are_rounded_up_and_never_nothing() {
        let window = |limit| {
            let terms = WindowTerms { limit, span: Span::from_secs(60) };
            Limit::Window([terms].into_iter().collect())
        };
        assert_eq!(window(10).share(3), window(4));
        assert_eq!(window(1).share(8), window(1));
        assert_eq!(window(10).share(1), window(10));
        let span = Span::from_secs(1);
        let fixed = |limit| Limit::Fixed(FixedTerms { limit, span, aligned: true });
        assert_eq!(fixed(100).share(4), fixed(25));
        let inflight = |limit| Limit::Inflight(InflightTerms { limit, hold: span });
        assert_eq!(inflight(20).share(3), inflight(7));
        assert_eq!(Limit::Unlimited.share(9), Limit::Unlimited);
    }

    #[test]
    fn a_share_of_a_bucket_fills_in_about_the_same_time() {
        let whole = BucketTerms { size: 100, tokens: 2, period: 60_000_000 };
        let share = BucketTerms { size: 25, tokens: 1, period: 120_000_000 };
        assert_eq!(Limit::Bucket(whole).share(4), Limit::Bucket(share));
        assert_eq!(share.time_to_fill(), whole.time_to_fill());
        let odd = BucketTerms { size: 7, tokens: 3, period: 10 };
        let share = BucketTerms { size: 4, tokens: 3, period: 20 };
        assert_eq!(Limit::Bucket(odd).share(2), Limit::Bucket(share));
    }

    #[test]
    fn a_share_stays_in_exact_arithmetic() {
        let vast = BucketTerms { size: 3, tokens: 1, period: EXACT_MAX / 3 };
        let Limit::Bucket(share) = Limit::Bucket(vast).share(2) else { panic!("a bucket") };
        assert_eq!((share.size, share.tokens, share.period), (2, 1, EXACT_MAX / 3));
        assert!(share.size * share.period <= EXACT_MAX);
    }
}
