//! A settled-marker: the first result of a settle, so that a second one changes nothing.
//!
//! Must live exactly as long as its ticket could be settled.

use super::Cell;
use crate::batch::RowSettled;
use crate::time::Time;

/// What the first settle answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The ticket's expiry.
    pub expires: Time,
    /// The first result, row by row.
    pub rows: Vec<RowSettled>,
}

impl Cell for Mark {
    fn forgotten_at(&self) -> Time {
        self.expires
    }

    fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<RowSettled>()
    }
}
