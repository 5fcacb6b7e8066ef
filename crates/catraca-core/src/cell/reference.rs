//! A reference: which check a later event speaks of, such as a payment's end-to-end id.
//!
//! Must not be an idempotency key for checks: only the first admitted check owns it.

use super::Cell;
use crate::digest::Key;
use crate::time::Time;

/// What is remembered of the check that owns a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// When it is forgotten.
    pub expires: Time,
    /// The check that owns it.
    pub owner: Key,
    /// The instant of each row of the check; absent for a row that was not charged.
    pub instants: Vec<Option<Time>>,
    /// The unsealed ticket, without its instants.
    pub ticket: Box<[u8]>,
    /// The status it was settled with; absent until then. Zero stands for an outcome without one.
    pub settled: Option<u16>,
    /// The events that were applied.
    pub credited: Vec<Box<str>>,
}

impl Cell for Reference {
    fn forgotten_at(&self) -> Time {
        self.expires
    }

    fn heap_bytes(&self) -> usize {
        self.ticket.len()
            + self.instants.capacity() * size_of::<Option<Time>>()
            + self.credited.iter().map(|event| event.len() + 16).sum::<usize>()
    }
}
