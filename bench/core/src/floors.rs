//! The floors: the least code that still decides by key. They are no products (no expiry, no byte
//! budget, no blocks), so a subject near a floor has little left to gain.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;

use crate::subject::{BURST, SECONDS_PER_UNIT, Subject};

const SHARDS: usize = 64;

/// Nanoseconds that one unit takes to come back.
const STEP: u64 = SECONDS_PER_UNIT as u64 * 1_000_000_000;

/// How far ahead of now a key's arrival time may run: the burst, in time.
const TOLERANCE: u64 = STEP * BURST as u64;

/// A theoretical arrival time per key, compared with a monotonic clock (GCRA).
struct Arrivals(Instant);

impl Arrivals {
    fn new() -> Self {
        Arrivals(Instant::now())
    }

    #[inline]
    fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    /// The next arrival time if a hit at `now` is admitted.
    #[inline]
    fn admit(arrival: u64, now: u64) -> Option<u64> {
        let start = arrival.max(now);
        (start - now <= TOLERANCE - STEP).then_some(start + STEP)
    }
}

type Shard = Mutex<HashMap<u128, u64, FxBuildHasher>>;

/// 64 locked maps from a 128-bit fingerprint to an arrival time.
pub struct ShardedMap {
    arrivals: Arrivals,
    high: ahash::RandomState,
    low: ahash::RandomState,
    shards: Vec<Shard>,
}

impl ShardedMap {
    /// Empty shards that grow on demand.
    pub fn new() -> Self {
        ShardedMap {
            arrivals: Arrivals::new(),
            high: ahash::RandomState::new(),
            low: ahash::RandomState::new(),
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
        }
    }
}

impl Subject for ShardedMap {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        let high = self.high.hash_one(key.as_bytes());
        let low = self.low.hash_one(key.as_bytes());
        let print = u128::from(high) << 64 | u128::from(low);
        let now = self.arrivals.now();
        let mut shard = self.shards[(high >> 58) as usize].lock();
        let arrival = shard.entry(print).or_insert(0);
        let next = Arrivals::admit(*arrival, now);
        *arrival = next.unwrap_or(*arrival);
        next.is_some()
    }
}

/// One flat lock-free table of 64-bit fingerprints, sized once; nothing ever leaves it.
pub struct Flat {
    arrivals: Arrivals,
    hasher: ahash::RandomState,
    cells: Vec<Cell>,
}

#[derive(Default)]
struct Cell {
    print: AtomicU64,
    arrival: AtomicU64,
}

impl Flat {
    /// At most half full when `keys` keys are in.
    pub fn new(keys: u64) -> Self {
        let cells = (2 * keys).max(1024).next_power_of_two();
        Flat {
            arrivals: Arrivals::new(),
            hasher: ahash::RandomState::new(),
            cells: (0..cells).map(|_| Cell::default()).collect(),
        }
    }

    /// The key's cell, claimed if it is new: linear probing from the fingerprint's middle bits.
    #[inline]
    fn cell(&self, print: u64) -> &Cell {
        let mask = self.cells.len() - 1;
        let mut at = (print >> 8) as usize & mask;
        loop {
            let cell = &self.cells[at];
            if cell.holds(print) {
                return cell;
            }
            at = (at + 1) & mask;
        }
    }
}

impl Cell {
    #[inline]
    fn holds(&self, print: u64) -> bool {
        let found = match self.print.load(Ordering::Relaxed) {
            0 => self.print.compare_exchange(0, print, Ordering::Relaxed, Ordering::Relaxed),
            other => Err(other),
        };
        found.map_or_else(|other| other == print, |_| true)
    }
}

impl Subject for Flat {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        // Zero marks an empty cell, so no fingerprint may be zero.
        let print = self.hasher.hash_one(key.as_bytes()) | 1;
        let now = self.arrivals.now();
        let admit = |arrival| Arrivals::admit(arrival, now);
        let cell = self.cell(print);
        cell.arrival.fetch_update(Ordering::Relaxed, Ordering::Relaxed, admit).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floors_admit_a_burst_and_no_more() {
        let full = TOLERANCE;
        assert_eq!(Arrivals::admit(0, 5), Some(5 + STEP));
        assert_eq!(Arrivals::admit(full - STEP, 0), Some(full));
        assert_eq!(Arrivals::admit(full, 0), None);
    }

    #[test]
    fn a_flat_table_keeps_every_key_apart() {
        let flat = Flat::new(1000);
        for n in 0..1000u64 {
            assert!(flat.hit_number(n));
            assert!(flat.hit_number(n));
        }
        let used = flat.cells.iter().filter(|c| c.print.load(Ordering::Relaxed) != 0).count();
        assert_eq!(used, 1000);
    }
}
