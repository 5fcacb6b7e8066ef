//! Looks for a step: a fill level at which a decision or an insert suddenly costs more.

use std::time::Instant;

use super::{Measure, expect_none, insert};
use crate::case::MILLION;
use crate::keys::Uniform;
use crate::machine::Load;
use crate::results::{Figures, median};
use crate::subject::Subject;

const LEVELS: u64 = 16;

/// Decisions are timed in several laps per level; the median lap outlives a lost time slice.
const LAPS: usize = 5;

/// The steps case.
pub struct Steps {
    /// A short run.
    pub quick: bool,
}

impl Measure for Steps {
    fn run<S: Subject>(self, make: impl FnOnce(u64) -> S) -> Figures {
        let load = Load::start();
        let subject = make(MILLION);
        let mut decide_ns = Vec::new();
        let mut insert_ns = Vec::new();
        for level in 1..=LEVELS {
            let held = MILLION * (level - 1) / LEVELS;
            let grown = MILLION * level / LEVELS;
            insert_ns.push(insert_cost(&subject, held, grown));
            decide_ns.push(self.decide_cost(&subject, grown));
        }
        let mut figures = Figures::default();
        for (level, (decide, insert)) in decide_ns.iter().zip(&insert_ns).enumerate() {
            figures.put(&format!("decide_ns_{:02}", level + 1), *decide);
            figures.put(&format!("insert_ns_{:02}", level + 1), *insert);
        }
        figures.put("decide_max_over_median", max(&decide_ns) / median(&decide_ns));
        figures.put("decide_largest_step", largest_step(&decide_ns));
        figures.put("insert_max_over_median", max(&insert_ns) / median(&insert_ns));
        figures.put("foreign", load.foreign());
        figures
    }
}

impl Steps {
    fn decide_cost(&self, subject: &impl Subject, keys: u64) -> f64 {
        let lap = if self.quick { 5_000 } else { 60_000 };
        let mut numbers = Uniform::new(keys, keys);
        let laps: Vec<f64> = (0..LAPS).map(|_| decide_lap(subject, &mut numbers, lap)).collect();
        median(&laps)
    }
}

#[inline(never)]
fn decide_lap(subject: &impl Subject, numbers: &mut Uniform, decisions: u64) -> f64 {
    let clock = Instant::now();
    let mut admitted = 0;
    for _ in 0..decisions {
        admitted += u64::from(subject.hit_number(numbers.next()));
    }
    let took = clock.elapsed().as_nanos() as f64;
    expect_none(decisions - admitted);
    took / decisions as f64
}

/// Mean cost of an insert between two levels: growth included, for it is paid by someone.
fn insert_cost(subject: &impl Subject, from: u64, to: u64) -> f64 {
    let clock = Instant::now();
    insert(subject, from, to);
    clock.elapsed().as_nanos() as f64 / (to - from) as f64
}

fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// The largest ratio between two neighbouring levels.
fn largest_step(levels: &[f64]) -> f64 {
    let ratios: Vec<f64> = levels.windows(2).map(|pair| pair[1] / pair[0]).collect();
    max(&ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_the_worst_rise_between_neighbours() {
        assert_eq!(largest_step(&[10.0, 20.0, 30.0, 15.0]), 2.0);
    }
}
