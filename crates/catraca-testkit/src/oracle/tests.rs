//! Tests of the oracle itself, with figures computed by hand from `docs/semantics.md`.
//!
//! Never copy an expected figure from the output of an implementation.

mod blocks;
mod buckets;
mod forgetting;
mod gates;
mod outcomes;
mod windows;

use super::answer::{Decision, SettleAnswer};
use super::catalog::{Algorithm, Catalog, Cost, Gate, Policy, Price};
use super::outcome::Outcome;
use super::select::{CheckRequest, Subject};
use super::{Micros, Oracle};

const MS: Micros = 1_000;
const S: Micros = 1_000_000;
const MIN: Micros = 60 * S;
const HOUR: Micros = 60 * MIN;
/// An instant that is not aligned to a second or minute.
const T: Micros = 1_700_000_000_123_456;

fn oracle(policies: Vec<Policy>) -> Oracle {
    let names = policies.iter().map(|policy| policy.name.clone()).collect();
    let gates = vec![Gate { name: "all".to_owned(), policies: names }];
    Oracle::new(Catalog { policies, gates, ..Catalog::default() })
}

fn bucket(size: i64, count: i64, period: Micros) -> Algorithm {
    Algorithm::Bucket { size, count, period }
}

fn fixed(limit: i64, span: Micros) -> Algorithm {
    Algorithm::Fixed { limit, span, aligned: false }
}

fn table(prices: &[(&str, i64)]) -> Cost {
    let price = |&(key, units): &(&str, i64)| (key.to_owned(), Price::Units(units));
    Cost::Table(prices.iter().map(price).collect())
}

fn subject_of(parts: &[(&str, &str)]) -> Subject {
    parts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn ip() -> Subject {
    subject_of(&[("ip", "192.0.2.1")])
}

fn request(cost: i64) -> CheckRequest {
    CheckRequest {
        gate: "all".to_owned(),
        subject: ip(),
        cost: Some(cost),
        reference: None,
        lists: true,
    }
}

fn plain() -> CheckRequest {
    CheckRequest { cost: None, ..request(1) }
}

fn status(code: i64) -> Outcome {
    Outcome { status: Some(code), ..Outcome::default() }
}

impl Oracle {
    fn go(&mut self, request: &CheckRequest, now: Micros) -> Decision {
        self.check(request, now).expect("the call is well formed")
    }

    fn passes(&mut self, now: Micros) -> bool {
        self.go(&plain(), now).allowed
    }

    /// How many of `tries` checks of one unit pass at `now`.
    fn admitted(&mut self, tries: usize, now: Micros) -> usize {
        (0..tries).filter(|_| self.passes(now)).count()
    }

    fn settle_last(&mut self, outcome: &Outcome, now: Micros) -> Vec<i64> {
        match self.settle(self.tickets.len() - 1, outcome, now) {
            SettleAnswer::Applied(paid) => paid.into_iter().map(|row| row.charged).collect(),
            other => panic!("not settled: {other:?}"),
        }
    }
}
