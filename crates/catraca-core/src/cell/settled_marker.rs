//! Settled-marker: the result of the first settle of a ticket, so that a second settle changes
//! nothing.
//!
//! It is stored exactly as long as the ticket can be settled.

use super::Cell;
use crate::batch::RowSettlement;
use crate::time::Time;

/// The result of the first settle of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledMarker {
    /// When the ticket expires.
    pub expires: Time,
    /// The result of each row.
    pub rows: Vec<RowSettlement>,
}

impl Cell for SettledMarker {
    fn expires_at(&self) -> Time {
        self.expires
    }

    fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<RowSettlement>()
    }
}
