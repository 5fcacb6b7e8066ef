//! Leases: how many requests are in flight, each freed at settle or at its own end.
//!
//! Must not outlive its holder for long: a lease always has an end.

use super::Cell;
use crate::limit::InflightTerms;
use crate::time::Time;

/// The live leases of one key, earliest end first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leases {
    /// Each lease's end and id.
    pub live: Vec<(Time, u64)>,
}

impl Cell for Leases {
    #[inline]
    fn forgotten_at(&self) -> Time {
        self.live.last().map_or(Time::ZERO, |(end, _)| *end)
    }

    fn heap_bytes(&self) -> usize {
        self.live.capacity() * size_of::<(Time, u64)>()
    }
}

impl Leases {
    /// Drops the leases that have ended; returns how many live.
    pub fn prune(&mut self, now: Time) -> i64 {
        let ended = self.live.partition_point(|(end, _)| *end <= now);
        self.live.drain(..ended);
        self.live.len() as i64
    }

    /// Adds a lease.
    pub fn take(&mut self, terms: &InflightTerms, now: Time, id: u64) {
        let lease = (now.after(terms.hold), id);
        let place = self.live.partition_point(|other| *other <= lease);
        self.live.insert(place, lease);
    }

    /// Returns a lease; says whether it was live.
    pub fn give_back(&mut self, id: u64) -> bool {
        let before = self.live.len();
        self.live.retain(|(_, other)| *other != id);
        self.live.len() < before
    }

    /// When one more lease fits.
    pub fn fits_at(&self, terms: &InflightTerms, now: Time) -> Time {
        let excess = self.live.len() as i64 - terms.limit;
        let index = usize::try_from(excess);
        index.ok().and_then(|index| self.live.get(index)).map_or(now, |(end, _)| *end)
    }

    /// When the last lease ends.
    pub fn full_at(&self, now: Time) -> Time {
        self.live.last().map_or(now, |(end, _)| *end)
    }
}
