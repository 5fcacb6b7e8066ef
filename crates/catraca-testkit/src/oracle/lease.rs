//! The in-flight count of section 1: who is inside, each until its own end.
//!
//! It must not look at costs: a check is one lease.

use super::Micros;

/// Leases given, each with the ticket it belongs to.
#[derive(Clone, Debug, Default)]
pub struct Leases {
    given: Vec<(usize, Micros)>,
}

impl Leases {
    /// How many more may enter at `now`.
    pub fn free(&self, limit: i64, now: Micros) -> i64 {
        limit - self.ends(now).len() as i64
    }

    /// The first instant at which one may enter.
    pub fn ready_at(&self, limit: i64, now: Micros) -> Micros {
        let ends = self.ends(now);
        let surplus = ends.len() as i64 - limit;
        if surplus < 0 { now } else { ends[surplus as usize] }
    }

    /// The first instant with nobody inside.
    pub fn full_at(&self, now: Micros) -> Micros {
        self.ends(now).last().copied().unwrap_or(now)
    }

    /// Lets a ticket in until `end`.
    pub fn enter(&mut self, ticket: usize, end: Micros) {
        self.given.push((ticket, end));
    }

    /// The ticket leaves.
    pub fn leave(&mut self, ticket: usize) {
        self.given.retain(|&(holder, _)| holder != ticket);
    }

    /// Ends of the live leases, earliest first.
    fn ends(&self, now: Micros) -> Vec<Micros> {
        let mut ends: Vec<Micros> =
            self.given.iter().map(|&(_, end)| end).filter(|&end| now < end).collect();
        ends.sort_unstable();
        ends
    }
}
