//! Makes a number of decisions over a resident population, without a clock: for callgrind, which
//! counts instructions.

use super::{Measure, expect_none, insert};
use crate::results::Figures;
use crate::subject::Subject;

/// Keys that take turns. With the largest count of decisions, none reaches the limit of a window.
const KEYS: u64 = 1_000;

/// The decisions of one run.
pub struct Decide {
    /// How many.
    pub decisions: u64,
}

impl Measure for Decide {
    const UNDER_VALGRIND: bool = true;

    fn run<S: Subject>(self, make: impl FnOnce(u64) -> S) -> Figures {
        let subject = make(KEYS);
        insert(&subject, 0, KEYS);
        let admitted = |number: &u64| subject.hit_number(number % KEYS);
        let admitted = (0..self.decisions).filter(admitted).count() as u64;
        expect_none(self.decisions - admitted);
        Figures::default()
    }
}
