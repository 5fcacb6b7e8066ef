//! Cells: the stored state of one key, and the port through which the rules reach them.
//!
//! A cell knows its own arithmetic and when it may be forgotten; it never learns which policy it
//! serves.
//! Must not read the time: every method takes `now`.

pub mod block;
pub mod bucket;
pub mod fixed;
pub mod leases;
pub mod log;
pub mod mark;
pub mod reference;
pub mod watch;

use crate::digest::Key;
use crate::time::Time;

pub use block::Block;
pub use bucket::Bucket;
pub use fixed::Fixed;
pub use leases::Leases;
pub use log::Log;
pub use mark::Mark;
pub use reference::Reference;
pub use watch::Watch;

/// The state kept for one key of one kind.
pub trait Cell: Sized {
    /// The first instant at which the cell equals no cell at all.
    fn forgotten_at(&self) -> Time;
    /// Bytes outside the cell itself, for the memory budget.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// Cells of one kind, by key.
pub trait Pool<C: Cell> {
    /// The cell, unless it is forgotten by `now`; for reading, and for edits that do not make it
    /// larger.
    fn get(&mut self, key: Key, now: Time) -> Option<&mut C>;
    /// Edits the cell where it lies and accounts for its new size.
    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R>;
    /// Writes a cell; `false` when the pool has no room for a new one.
    fn put(&mut self, key: Key, cell: C, now: Time) -> bool;
    /// Removes a cell; says whether there was one.
    fn remove(&mut self, key: Key, now: Time) -> bool;
}

/// All the state that a batch touches.
pub trait Cells:
    Pool<Bucket>
    + Pool<Log>
    + Pool<Fixed>
    + Pool<Leases>
    + Pool<Block>
    + Pool<Watch>
    + Pool<Mark>
    + Pool<Reference>
{
    /// Where a new counter of `key` may live: at its own key, or in a cell shared by the `family`
    /// when memory is full.
    fn place(&mut self, key: Key, family: u64, now: Time) -> Place;
}

/// Where a new counter lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At its own key.
    Own,
    /// In a cell shared with other keys of the same policy.
    Shared(Key),
}

/// Instants of forgetting are kept as whole seconds, rounded up, to keep cells small.
pub type Second = u32;

/// The first whole second at or after an instant.
#[inline]
pub fn second_after(at: Time) -> Second {
    let seconds = at.micros().saturating_add(999_999) / 1_000_000;
    Second::try_from(seconds).unwrap_or(Second::MAX)
}

/// The instant of a whole second; the last one means never.
#[inline]
pub fn instant_of(second: Second) -> Time {
    if second == Second::MAX {
        return Time::FOREVER;
    }
    Time::from_micros(i64::from(second) * 1_000_000)
}
