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
    const IS_INLINE: bool = false;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_of_a_reference_is_its_ticket_instants_and_events() {
        let mut reference = Reference {
            expires: Time::ZERO,
            owner: Key::from_bytes([0; 16]),
            instants: Vec::new(),
            ticket: Box::from([0; 100]),
            settled: None,
            credited: Vec::new(),
        };
        assert_eq!(reference.heap_bytes(), 100);
        reference.instants = Vec::with_capacity(3);
        assert_eq!(reference.heap_bytes(), 100 + 3 * size_of::<Option<Time>>());
        reference.instants = Vec::new();
        reference.credited = vec!["paid".into(), "refunded".into()];
        assert_eq!(reference.heap_bytes(), 100 + 4 + 16 + 8 + 16);
    }
}
