//! Settlements that are due later, in the order in which they run: by instant, then by line.

use std::cmp::Ordering;

use catraca::{Outcome, Time};
use catraca_core::ticket::Ticket;

use super::line_result::ResultIndex;

/// A settlement that is due later.
pub struct DueSettlement {
    /// When it is due.
    pub at: Time,
    /// The result of the check.
    pub index: ResultIndex,
    /// The line of the check.
    pub line: u64,
    /// The ticket of the check.
    pub ticket: Ticket,
    /// The outcome.
    pub outcome: Outcome,
}

impl PartialEq for DueSettlement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for DueSettlement {}

impl PartialOrd for DueSettlement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DueSettlement {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.index).cmp(&(other.at, other.index))
    }
}
