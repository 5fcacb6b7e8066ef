//! What every measurement shares: the port through which a subject is handed over, and filling.
//! A measurement counts every verdict and panics on a denial: a denied row would time other work.

mod decide;
mod fill;
mod speed;
mod steps;

pub use decide::Decide;
pub use fill::{Fill, KeyBytes};
pub use speed::Speed;
pub use steps::Steps;

use std::time::{Duration, Instant};

use crate::results::Figures;
use crate::subject::Subject;

/// A fill slower than this is a defect of the subject, not a measurement.
const FILL_LIMIT: Duration = Duration::from_secs(60);

/// One kind of measurement. It calls `make` with the number of keys it will hold, when its own
/// base figures are taken.
pub trait Measure {
    /// Whether the process runs under valgrind, where the product's clock cannot be read.
    const UNDER_VALGRIND: bool = false;

    /// Measures, in this process.
    fn run<S: Subject>(self, make: impl FnOnce(u64) -> S) -> Figures;
}

/// Inserts the keys `from..to`, one hit each.
fn insert(subject: &impl Subject, from: u64, to: u64) {
    let start = Instant::now();
    for number in from..to {
        assert!(subject.hit_number(number), "key {number} was denied on its first hit");
        let pause = number.is_multiple_of(4096);
        assert!(!pause || start.elapsed() < FILL_LIMIT, "{number} keys took {FILL_LIMIT:?}");
    }
}

/// Panics if anything was denied.
fn expect_none(denied: u64) {
    assert_eq!(denied, 0, "{denied} decisions were denials: other work than meant was timed");
}

/// Two hits of one key: whether a subject works at all.
#[cfg(test)]
pub struct Smoke;

#[cfg(test)]
impl Measure for Smoke {
    fn run<S: Subject>(self, make: impl FnOnce(u64) -> S) -> Figures {
        let subject = make(10);
        insert(&subject, 0, 10);
        insert(&subject, 0, 10);
        Figures::default()
    }
}
