//! Reference: the check that a later settle or credit names by its `ref`, such as a payment's
//! EndToEndId.
//!
//! The first admitted check with a `ref` owns it. A reference does not make checks idempotent: a
//! second check with the same `ref` is evaluated and charged.

use super::Cell;
use crate::digest::Key;
use crate::time::Time;

/// The check that owns a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// When the reference expires.
    pub expires: Time,
    /// The key of the settled-marker of the owning check, which identifies it.
    pub owner: Key,
    /// The instant of each row at the check; absent for a row that was not charged.
    pub instants: Vec<Option<Time>>,
    /// The body of the ticket in plain bytes, without its instants.
    pub ticket: Box<[u8]>,
    /// The status of the settle: absent until then, zero for an outcome without a status.
    pub settled: Option<u16>,
    /// The events that were credited.
    pub credited: Vec<Box<str>>,
}

impl Cell for Reference {
    fn expires_at(&self) -> Time {
        self.expires
    }

    fn heap_bytes(&self) -> usize {
        self.ticket.len()
            + self.instants.capacity() * size_of::<Option<Time>>()
            // Each event is a boxed text: its bytes, and 16 for pointer and length.
            + self.credited.iter().map(|event| event.len() + 16).sum::<usize>()
    }
}
