//! The in-flight limit of section 1: leases, each with its own end. A check is one lease,
//! independent of its cost.

use super::Micros;

/// The leases of one key.
#[derive(Clone, Debug, Default)]
pub struct Leases {
    /// The ticket and the end of each lease.
    granted: Vec<(usize, Micros)>,
}

impl Leases {
    /// How many more leases fit at `now`.
    pub fn free(&self, limit: i64, now: Micros) -> i64 {
        limit - self.ends(now).len() as i64
    }

    /// The first instant at which one more lease fits.
    pub fn ready_at(&self, limit: i64, now: Micros) -> Micros {
        let ends = self.ends(now);
        // One more lease fits when `surplus + 1` of the present ones have ended.
        let surplus = ends.len() as i64 - limit;
        if surplus < 0 { now } else { ends[surplus as usize] }
    }

    /// The first instant without a lease.
    pub fn full_at(&self, now: Micros) -> Micros {
        self.ends(now).last().copied().unwrap_or(now)
    }

    /// Adds the lease of a ticket until `end`.
    pub fn enter(&mut self, ticket: usize, end: Micros) {
        self.granted.push((ticket, end));
    }

    /// Removes the lease of a ticket.
    pub fn leave(&mut self, ticket: usize) {
        self.granted.retain(|&(holder, _)| holder != ticket);
    }

    /// The ends of the active leases, earliest first.
    fn ends(&self, now: Micros) -> Vec<Micros> {
        let mut ends: Vec<Micros> =
            self.granted.iter().map(|&(_, end)| end).filter(|&end| now < end).collect();
        ends.sort_unstable();
        ends
    }
}
