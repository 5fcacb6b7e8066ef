//! Cells: the stored state of one key, one kind each, and the traits through which the rules reach
//! them.
//!
//! A cell knows its own arithmetic and the instant from which it is equivalent to no cell. It knows
//! no policy: the terms come with every batch.

pub mod block;
pub mod bucket;
pub mod fixed_window;
pub mod in_flight;
pub mod ratio_watch;
pub mod reference;
pub mod settled_marker;
pub mod sliding_window;

use crate::digest::Key;
use crate::time::Time;

pub use block::Block;
pub use bucket::Bucket;
pub use fixed_window::FixedWindow;
pub use in_flight::InFlight;
pub use ratio_watch::RatioWatch;
pub use reference::Reference;
pub use settled_marker::SettledMarker;
pub use sliding_window::SlidingWindow;

/// The stored state of one kind for one key.
pub trait Cell: Sized {
    /// The instant from which the cell counts as absent: nothing that it holds has an effect any
    /// more. A store may free it at any time after that, without changing a decision.
    fn expires_at(&self) -> Time;
    /// Bytes on the heap, for the memory budget of the store.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// A table of cells of one kind, by key.
pub trait CellTable<C: Cell> {
    /// The cell, unless it has expired by `now`. For reading, and for changes in place that do not
    /// make it larger.
    fn get(&mut self, key: Key, now: Time) -> Option<&mut C>;
    /// Changes the cell in place and accounts for its new size; `None` if there is no cell.
    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R>;
    /// Writes a cell. Returns `false` if the table has no room for a new one.
    fn put(&mut self, key: Key, cell: C, now: Time) -> bool;
    /// Removes a cell. Returns whether there was one that had not expired.
    fn remove(&mut self, key: Key, now: Time) -> bool;
}

/// The cells of all kinds that a batch can touch.
pub trait CellStore:
    CellTable<Bucket>
    + CellTable<SlidingWindow>
    + CellTable<FixedWindow>
    + CellTable<InFlight>
    + CellTable<Block>
    + CellTable<RatioWatch>
    + CellTable<SettledMarker>
    + CellTable<Reference>
{
    /// Reserves the place of a new counter: at its own key, or in an overflow cell of the `family`
    /// if memory is full.
    fn counter_slot(&mut self, key: Key, family: u64, now: Time) -> CounterSlot;
}

/// Where a new counter is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterSlot {
    /// At its own key.
    Own,
    /// In an overflow cell, which new keys of the same policy share while memory is full.
    Overflow(Key),
}

/// The instant at which a counter expires: whole seconds since the epoch, rounded up. Four bytes
/// instead of eight keep the table entry of a bucket at 48 bytes (docs/adr/0006).
pub type Second = u32;

/// The first whole second at or after an instant.
#[inline]
pub fn second_after(at: Time) -> Second {
    // An instant that does not fit in 32 bits of seconds becomes never.
    let seconds = at.micros().saturating_add(999_999) / 1_000_000;
    Second::try_from(seconds).unwrap_or(Second::MAX)
}

/// The instant of a whole second; the largest value means never.
#[inline]
pub fn instant_of(second: Second) -> Time {
    if second == Second::MAX {
        return Time::FOREVER;
    }
    Time::from_micros(i64::from(second) * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_rounded_up_and_its_instant_is_not_before() {
        let second = |micros| second_after(Time::from_micros(micros));
        assert_eq!(second(0), 0);
        assert_eq!(second(1), 1);
        assert_eq!(second(2_000_000), 2);
        assert_eq!(second(2_000_001), 3);
        assert_eq!(instant_of(3), Time::from_micros(3_000_000));
    }

    #[test]
    fn an_instant_after_the_last_second_is_never() {
        assert_eq!(second_after(Time::FOREVER), Second::MAX);
        assert_eq!(instant_of(Second::MAX), Time::FOREVER);
    }
}
