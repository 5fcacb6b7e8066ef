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
    const IS_INLINE: bool = false;

    fn expires_at(&self) -> Time {
        self.expires
    }

    fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<RowSettlement>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_of_a_marker_is_its_rows() {
        let marker = |rows| SettledMarker { expires: Time::ZERO, rows };
        assert_eq!(marker(Vec::new()).heap_bytes(), 0);
        let rows = Vec::with_capacity(4);
        assert_eq!(marker(rows).heap_bytes(), 4 * size_of::<RowSettlement>());
    }
}
