//! In-flight leases: one per concurrent request, ended by its settle or by its own timeout.
//!
//! Every lease has an end, so that a caller that never settles does not keep its unit forever.

use super::Cell;
use crate::limit::InflightTerms;
use crate::time::Time;

/// The live leases of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// End and id of each lease, sorted: earliest end first, equal ends by id. All stores use this
    /// order, so that their encodings are equal.
    pub live: Vec<(Time, u64)>,
}

impl Cell for InFlight {
    #[inline]
    fn expires_at(&self) -> Time {
        self.live.last().map_or(Time::ZERO, |(end, _)| *end)
    }

    fn heap_bytes(&self) -> usize {
        self.live.capacity() * size_of::<(Time, u64)>()
    }
}

impl InFlight {
    /// Drops the leases that have ended. Returns how many are left.
    pub fn prune(&mut self, now: Time) -> i64 {
        let ended = self.live.partition_point(|(end, _)| *end <= now);
        self.live.drain(..ended);
        self.live.len() as i64
    }

    /// Adds a lease that ends after the `hold` of the policy.
    pub fn take(&mut self, terms: &InflightTerms, now: Time, id: u64) {
        let lease = (now.after(terms.hold), id);
        let index = self.live.partition_point(|other| *other <= lease);
        self.live.insert(index, lease);
    }

    /// Ends a lease early. Returns whether it was live.
    pub fn release(&mut self, id: u64) -> bool {
        let before = self.live.len();
        self.live.retain(|(_, other)| *other != id);
        self.live.len() < before
    }

    /// When one more lease fits: when so many leases have ended that fewer than the limit are left.
    pub fn fits_at(&self, terms: &InflightTerms, now: Time) -> Time {
        // Of `n` leases, `n - limit + 1` must end before one more fits. The last of these has the
        // index `n - limit`; a negative index means that there is room now.
        let excess = self.live.len() as i64 - terms.limit;
        let index = usize::try_from(excess);
        index.ok().and_then(|index| self.live.get(index)).map_or(now, |(end, _)| *end)
    }

    /// When the last lease ends; `now` without leases.
    pub fn full_at(&self, now: Time) -> Time {
        self.live.last().map_or(now, |(end, _)| *end)
    }
}
