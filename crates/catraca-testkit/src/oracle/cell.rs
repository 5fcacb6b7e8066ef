//! The state of one (policy, key), and the operations of section 1 for each algorithm.

use super::Micros;
use super::block::{self, Block};
use super::bucket::Bucket;
use super::catalog::Algorithm;
use super::fixed::FixedWindow;
use super::lease::Leases;
use super::select::ActiveTerms;
use super::window::Window;

/// The state of one (policy, key). Each algorithm has its own, because a policy whose algorithm
/// changes starts empty.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The state of a bucket.
    pub bucket: Bucket,
    /// The state of sliding windows.
    pub window: Window,
    /// The state of a fixed window.
    pub fixed: FixedWindow,
    /// The state of an in-flight limit.
    pub leases: Leases,
    /// The last block; after its end it holds the escalation level.
    pub block: Option<Block>,
    /// The instants of strikes, by the index of the ban rule.
    pub strikes: Vec<Vec<Micros>>,
    /// The outcomes that the watch counted.
    pub watched: Vec<WatchedOutcome>,
}

/// One outcome that the watch counted.
#[derive(Clone, Copy, Debug)]
pub struct WatchedOutcome {
    /// The number of its slice since the epoch.
    pub slice: i64,
    /// The length of a slice.
    pub length: Micros,
    /// Whether its status is one of the watched share.
    pub part: bool,
}

impl Cell {
    /// Drops expired state; every call does this first.
    pub fn touch(&mut self, terms: &ActiveTerms, now: Micros) {
        if let Algorithm::Window(windows) = terms.algorithm {
            self.window.touch(windows, now);
        }
    }

    /// `(limit, free)` of each limit of the row.
    pub fn quotas(&self, terms: &ActiveTerms, now: Micros) -> Vec<(i64, i64)> {
        match *terms.algorithm {
            Algorithm::None => Vec::new(),
            Algorithm::Bucket { size, count, period } => {
                let bucket = terms.bucket(size, count, period);
                vec![(bucket.size, self.bucket.free(bucket, now))]
            }
            Algorithm::Window(ref windows) => self.window.free(windows, now),
            Algorithm::Fixed { limit, span, aligned } => {
                vec![(limit, self.fixed.free(terms.fixed_terms(limit, span, aligned), now))]
            }
            Algorithm::Inflight(limit) => vec![(limit, self.leases.free(limit, now))],
        }
    }

    /// The smallest number of free units of its limits; `None` without a limit.
    pub fn free(&self, terms: &ActiveTerms, now: Micros) -> Option<i64> {
        self.quotas(terms, now).into_iter().map(|(_, free)| free).min()
    }

    /// The first instant at which `need` units are free.
    pub fn ready_at(&self, terms: &ActiveTerms, need: i64, now: Micros) -> Micros {
        match *terms.algorithm {
            Algorithm::None => now,
            Algorithm::Bucket { size, count, period } => {
                self.bucket.ready_at(terms.bucket(size, count, period), need, now)
            }
            Algorithm::Window(ref windows) => self.window.ready_at(windows, need, now),
            Algorithm::Fixed { limit, span, aligned } => {
                self.fixed.ready_at(terms.fixed_terms(limit, span, aligned), need, now)
            }
            Algorithm::Inflight(limit) => self.leases.ready_at(limit, now),
        }
    }

    /// The first instant at which the full quota is available.
    pub fn full_at(&self, terms: &ActiveTerms, now: Micros) -> Micros {
        match *terms.algorithm {
            Algorithm::None => now,
            Algorithm::Bucket { size, count, period } => {
                let bucket = terms.bucket(size, count, period);
                self.bucket.ready_at(bucket, bucket.size, now)
            }
            Algorithm::Window(ref windows) => self.window.full_at(windows, now),
            Algorithm::Fixed { limit, span, aligned } => {
                self.fixed.full_at(terms.fixed_terms(limit, span, aligned), now)
            }
            Algorithm::Inflight(_) => self.leases.full_at(now),
        }
    }

    /// Charges `units`. Leases are not charged: [`Leases::enter`] adds them.
    pub fn charge(&mut self, terms: &ActiveTerms, units: i64, now: Micros) {
        match *terms.algorithm {
            Algorithm::None | Algorithm::Inflight(_) => {}
            Algorithm::Bucket { size, count, period } => {
                if units != 0 {
                    let kept = terms.kept_buckets();
                    self.bucket.charge(terms.bucket(size, count, period), &kept, units, now);
                }
            }
            Algorithm::Window(ref windows) => self.window.charge(windows, units, now),
            Algorithm::Fixed { limit, span, aligned } => {
                self.fixed.charge(terms.fixed_terms(limit, span, aligned), units, now);
            }
        }
    }

    /// Refunds up to `units` of a check made at `instant`; returns how many.
    pub fn refund(&mut self, terms: &ActiveTerms, units: i64, instant: Micros, now: Micros) -> i64 {
        match *terms.algorithm {
            Algorithm::None | Algorithm::Inflight(_) => 0,
            Algorithm::Bucket { size, count, period } => {
                let kept = terms.kept_buckets();
                self.bucket.give(terms.bucket(size, count, period), &kept, units, now)
            }
            Algorithm::Window(ref windows) => self.window.refund(windows, units, instant, now),
            Algorithm::Fixed { limit, span, aligned } => {
                self.fixed.refund(terms.fixed_terms(limit, span, aligned), units, instant, now)
            }
        }
    }

    /// Takes all free units; returns how many.
    pub fn drain(&mut self, terms: &ActiveTerms, now: Micros) -> i64 {
        if let Algorithm::Bucket { size, count, period } = *terms.algorithm {
            let kept = terms.kept_buckets();
            return self.bucket.drain(terms.bucket(size, count, period), &kept, now);
        }
        let free = self.free(terms, now).unwrap_or(0).max(0);
        self.charge(terms, free, now);
        free
    }

    /// Counts a denial by the row's own limit; a denial of 0 units changes nothing.
    pub fn count_denied(&mut self, terms: &ActiveTerms, units: i64, now: Micros) {
        if units == 0 {
            return;
        }
        match *terms.algorithm {
            Algorithm::Window(ref windows) => self.window.count_denied(windows, units, now),
            Algorithm::Fixed { limit, span, aligned } => {
                self.fixed.count_denied(terms.fixed_terms(limit, span, aligned), units, now);
            }
            _ => {}
        }
    }

    /// The active block of a row under these terms.
    pub fn active_block(&self, terms: &ActiveTerms, now: Micros) -> Option<&Block> {
        block::active_block(&self.block, terms.shadow, now)
    }
}
