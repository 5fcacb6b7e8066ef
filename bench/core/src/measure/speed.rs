//! Times decisions over a population that is already resident: nothing is inserted while timing.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::{Measure, expect_none, insert};
use crate::keys::Uniform;
use crate::machine::{self, Load};
use crate::results::Figures;
use crate::subject::Subject;

/// Decisions between two looks at the clock.
const BATCH: u64 = 1024;

/// Fewer decisions than this say nothing.
const LEAST: u64 = 250_000;

/// Share of a key's limit that its mean load may reach; random loads spread around the mean.
const HEADROOM: u64 = 6;

/// The speed cases.
pub struct Speed {
    /// Resident keys.
    pub keys: u64,
    /// Threads deciding at once.
    pub threads: usize,
    /// A short run.
    pub quick: bool,
    /// Hits one key may take before it is denied.
    pub per_key: u64,
}

/// What one thread saw.
struct Lap {
    /// Timed decisions.
    decisions: u64,
    /// Denials, warming included. Judged when all threads are back: a panic in one of them would
    /// leave the others waiting for it.
    denied: u64,
    wall_ns: f64,
    cpu_ns: f64,
}

impl Speed {
    /// Whether enough decisions fit before the first denial.
    pub fn fits(keys: u64, per_key: u64) -> bool {
        keys.saturating_mul(per_key) / HEADROOM >= 2 * LEAST
    }

    fn span(&self) -> Duration {
        Duration::from_millis(if self.quick { 60 } else { 800 })
    }

    /// Decisions one thread may make, warming included, before a key could run out.
    fn most(&self) -> u64 {
        self.keys.saturating_mul(self.per_key) / HEADROOM / self.threads as u64
    }

    fn lap(&self, subject: &impl Subject, thread: usize, start: &Barrier) -> Lap {
        let mut numbers = Uniform::new(self.keys, 77 + thread as u64);
        let (_, early) = decide(subject, &mut numbers, self.span() / 8, self.most() / 8);
        start.wait();
        let cpu = machine::thread_cpu_ns();
        let clock = Instant::now();
        let (decisions, late) = decide(subject, &mut numbers, self.span(), self.most() * 7 / 8);
        let wall_ns = clock.elapsed().as_nanos() as f64;
        Lap { decisions, denied: early + late, wall_ns, cpu_ns: machine::thread_cpu_ns() - cpu }
    }

    fn laps(&self, subject: &impl Subject) -> Vec<Lap> {
        let start = &Barrier::new(self.threads);
        thread::scope(|scope| {
            let spawn = |thread| scope.spawn(move || self.lap(subject, thread, start));
            let running: Vec<_> = (0..self.threads).map(spawn).collect();
            running.into_iter().map(|lap| lap.join().expect("a lap panicked")).collect()
        })
    }
}

impl Measure for Speed {
    fn run<S: Subject>(self, make: impl FnOnce(u64) -> S) -> Figures {
        let subject = make(self.keys);
        insert(&subject, 0, self.keys);
        let load = Load::start();
        let laps = self.laps(&subject);
        summary(&laps, load.foreign())
    }
}

/// Decides until `span` has passed or `most` decisions are made; returns how many, and denials.
#[inline(never)]
fn decide(subject: &impl Subject, numbers: &mut Uniform, span: Duration, most: u64) -> (u64, u64) {
    let start = Instant::now();
    let mut asked = 0;
    let mut admitted = 0;
    while asked + BATCH <= most && start.elapsed() < span {
        for _ in 0..BATCH {
            admitted += u64::from(subject.hit_number(numbers.next()));
        }
        asked += BATCH;
    }
    (asked, asked - admitted)
}

fn summary(laps: &[Lap], foreign: f64) -> Figures {
    let mean = |ns: fn(&Lap) -> f64| {
        laps.iter().map(|lap| ns(lap) / lap.decisions as f64).sum::<f64>() / laps.len() as f64
    };
    expect_none(laps.iter().map(|lap| lap.denied).sum());
    let mut figures = Figures::default();
    figures.put("ns", mean(|lap| lap.wall_ns));
    figures.put("cpu_ns", mean(|lap| lap.cpu_ns));
    figures.put("mdec_s", laps.iter().map(|lap| lap.decisions as f64 / lap.wall_ns * 1e3).sum());
    figures.put("decisions", laps.iter().map(|lap| lap.decisions as f64).sum());
    figures.put("foreign", foreign);
    figures
}
