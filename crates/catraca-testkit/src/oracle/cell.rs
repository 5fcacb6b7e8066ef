//! The state of one (policy, key), and section 1's table of what each algorithm makes of it.
//!
//! It must not decide anything: it says what is free, and takes or gives what it is told.

use super::Micros;
use super::block::{self, Block};
use super::bucket::Bucket;
use super::catalog::Algorithm;
use super::fixed::Fixed;
use super::lease::Leases;
use super::select::InForce;
use super::window::Window;

/// Everything remembered of one (policy, key). Each algorithm has its own state, so that a changed
/// one starts fresh.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// State as a bucket.
    pub bucket: Bucket,
    /// State as sliding windows.
    pub window: Window,
    /// State as a fixed window.
    pub fixed: Fixed,
    /// State as an in-flight count.
    pub leases: Leases,
    /// The block, also when it is over.
    pub block: Option<Block>,
    /// Instants of strikes, for each ban rule.
    pub strikes: Vec<Vec<Micros>>,
    /// Outcomes the watch counted.
    pub watched: Vec<Watched>,
}

/// Outcomes of one slice of the watch.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// Number of the slice since the epoch.
    pub slice: i64,
    /// How long the slice is.
    pub length: Micros,
    /// Whether it also belongs to the part.
    pub part: bool,
}

impl Cell {
    /// What any touch does before it looks.
    pub fn touch(&mut self, terms: &InForce, now: Micros) {
        if let Algorithm::Window(windows) = terms.algorithm {
            self.window.touch(windows, now);
        }
    }

    /// `(limit, free)` of each limit of the row.
    pub fn quotas(&self, terms: &InForce, now: Micros) -> Vec<(i64, i64)> {
        match *terms.algorithm {
            Algorithm::None => Vec::new(),
            Algorithm::Bucket { size, count, period } => {
                let bucket = terms.bucket(size, count, period);
                vec![(bucket.size, self.bucket.free(bucket, now))]
            }
            Algorithm::Window(ref windows) => self.window.free(windows, now),
            Algorithm::Fixed { limit, span, aligned } => {
                vec![(limit, self.fixed.free(terms.fixed(limit, span, aligned), now))]
            }
            Algorithm::Inflight(limit) => vec![(limit, self.leases.free(limit, now))],
        }
    }

    /// The least that is free.
    pub fn free(&self, terms: &InForce, now: Micros) -> Option<i64> {
        self.quotas(terms, now).into_iter().map(|(_, free)| free).min()
    }

    /// The first instant at which `need` units are free.
    pub fn ready_at(&self, terms: &InForce, need: i64, now: Micros) -> Micros {
        match *terms.algorithm {
            Algorithm::None => now,
            Algorithm::Bucket { size, count, period } => {
                self.bucket.ready_at(terms.bucket(size, count, period), need, now)
            }
            Algorithm::Window(ref windows) => self.window.ready_at(windows, need, now),
            Algorithm::Fixed { limit, span, aligned } => {
                self.fixed.ready_at(terms.fixed(limit, span, aligned), need, now)
            }
            Algorithm::Inflight(limit) => self.leases.ready_at(limit, now),
        }
    }

    /// The first instant at which the full quota is back.
    pub fn full_at(&self, terms: &InForce, now: Micros) -> Micros {
        match *terms.algorithm {
            Algorithm::None => now,
            Algorithm::Bucket { size, count, period } => {
                let bucket = terms.bucket(size, count, period);
                self.bucket.ready_at(bucket, bucket.size, now)
            }
            Algorithm::Window(ref windows) => self.window.full_at(windows, now),
            Algorithm::Fixed { limit, span, aligned } => {
                self.fixed.full_at(terms.fixed(limit, span, aligned), now)
            }
            Algorithm::Inflight(_) => self.leases.full_at(now),
        }
    }

    /// Charges `units`. Leases are not charged here but entered.
    pub fn charge(&mut self, terms: &InForce, units: i64, now: Micros) {
        match *terms.algorithm {
            Algorithm::None | Algorithm::Inflight(_) => {}
            Algorithm::Bucket { size, count, period } => {
                if units != 0 {
                    self.bucket.charge(terms.bucket(size, count, period), units, now);
                }
            }
            Algorithm::Window(ref windows) => self.window.charge(windows, units, now),
            Algorithm::Fixed { limit, span, aligned } => {
                self.fixed.charge(terms.fixed(limit, span, aligned), units, now);
            }
        }
    }

    /// Gives back `units` of a check made at `instant`; says how many were given.
    pub fn refund(&mut self, terms: &InForce, units: i64, instant: Micros, now: Micros) -> i64 {
        match *terms.algorithm {
            Algorithm::None | Algorithm::Inflight(_) => 0,
            Algorithm::Bucket { size, count, period } => {
                self.bucket.give(terms.bucket(size, count, period), units, now)
            }
            Algorithm::Window(ref windows) => self.window.refund(windows, units, instant, now),
            Algorithm::Fixed { limit, span, aligned } => {
                self.fixed.refund(terms.fixed(limit, span, aligned), units, instant, now)
            }
        }
    }

    /// Takes all that is free; says how much.
    pub fn drain(&mut self, terms: &InForce, now: Micros) -> i64 {
        if let Algorithm::Bucket { size, count, period } = *terms.algorithm {
            return self.bucket.drain(terms.bucket(size, count, period), now);
        }
        let free = self.free(terms, now).unwrap_or(0).max(0);
        self.charge(terms, free, now);
        free
    }

    /// Counts a denial by the row's own limit; a denial of nothing changes nothing.
    pub fn count_denied(&mut self, terms: &InForce, units: i64, now: Micros) {
        if units == 0 {
            return;
        }
        match *terms.algorithm {
            Algorithm::Window(ref windows) => self.window.count_denied(windows, units, now),
            Algorithm::Fixed { limit, span, aligned } => {
                self.fixed.count_denied(terms.fixed(limit, span, aligned), units, now);
            }
            _ => {}
        }
    }

    /// The block that stands for a row under these terms.
    pub fn standing(&self, terms: &InForce, now: Micros) -> Option<&Block> {
        block::standing(&self.block, terms.shadow, now)
    }
}
