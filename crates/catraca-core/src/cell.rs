//! Cells: the stored state of one key, one kind each, and the traits through which the rules reach
//! them.
//!
//! [`for_each_kind`](crate::for_each_kind) is the only list of kinds; every store derives its own
//! tables, names and numbers from it. A cell knows its own arithmetic and the instant from which it
//! is equivalent to no cell. It knows no policy: the terms come with every batch. The cells of
//! algorithms are in their files.

pub mod block;
pub mod ratio_watch;
pub mod reference;
pub mod settled_marker;

use crate::codec::Codec;
use crate::digest::Key;
use crate::time::Time;

pub use crate::algorithm::bucket::Bucket;
pub use crate::algorithm::fixed_window::FixedWindow;
pub use crate::algorithm::in_flight::InFlight;
pub use crate::algorithm::sliding_window::SlidingWindow;
pub use block::Block;
pub use ratio_watch::RatioWatch;
pub use reference::Reference;
pub use settled_marker::SettledMarker;

/// The list of kinds of state. Calls the macro `$then` with its arguments in parentheses and one
/// row per kind: its variant of `CellKind`, its cell, its name as a field, and
///
/// - its number, which is stored beside its bytes in snapshots and rows of PostgreSQL; that of an
///   algorithm's cell is also the number of the algorithm in the Redis script;
/// - its name in metrics;
/// - the letter of its keys in Redis;
/// - the pool whose memory it uses;
/// - whether the reset of a key removes it.
///
/// Numbers, letters and names are stored or published: new ones may be added, none may change.
#[macro_export]
macro_rules! for_each_kind {
    ($then:ident $($args:tt)*) => {
        $then! {
            ($($args)*)
            /// A token bucket.
            Bucket($crate::cell::Bucket) bucket
                { 1, "buckets", b'b', Counters, true }
            /// A sliding window, or the strikes of a ban rule.
            SlidingWindow($crate::cell::SlidingWindow) sliding_window
                { 2, "logs", b'l', Counters, true }
            /// A fixed window.
            FixedWindow($crate::cell::FixedWindow) fixed_window
                { 3, "fixed", b'f', Counters, true }
            /// In-flight leases.
            InFlight($crate::cell::InFlight) in_flight
                { 4, "leases", b'i', Counters, true }
            /// A block.
            Block($crate::cell::Block) block
                { 5, "blocks", b'x', Blocks, true }
            /// A watched ratio.
            RatioWatch($crate::cell::RatioWatch) ratio_watch
                { 6, "watches", b'w', Counters, true }
            /// A settled-marker, which has a key of its own.
            SettledMarker($crate::cell::SettledMarker) settled_marker
                { 7, "marks", b'm', SettledMarkers, false }
            /// A reference, which has a key of its own.
            Reference($crate::cell::Reference) reference
                { 8, "references", b'r', References, false }
        }
    };
}

macro_rules! cell_kind {
    (() $(
        $(#[$doc:meta])*
        $kind:ident($cell:ty) $field:ident {
            $number:literal, $name:literal, $letter:literal, $pool:ident, $reset:literal
        }
    )*) => {
        /// The kind of a cell.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum CellKind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl CellKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The name in metrics.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The letter of its keys in Redis.
            pub const fn letter(self) -> u8 {
                match self {
                    $(Self::$kind => $letter,)*
                }
            }

            /// The pool whose memory it uses.
            pub const fn pool(self) -> MemoryPool {
                match self {
                    $(Self::$kind => MemoryPool::$pool,)*
                }
            }

            /// Whether the reset of a key removes it.
            pub const fn is_reset(self) -> bool {
                match self {
                    $(Self::$kind => $reset,)*
                }
            }
        }

        $(impl Codec for $cell {
            const KIND: CellKind = CellKind::$kind;
        })*

        /// The cells of all kinds that a batch can touch.
        pub trait CellStore: $(CellTable<$cell> +)* {}

        impl<S: $(CellTable<$cell> +)*> CellStore for S {}

        /// Removes all state of a key that its reset removes.
        pub(crate) fn reset<S: CellStore>(key: Key, cells: &mut S, now: Time) {
            $(if CellKind::$kind.is_reset() {
                CellTable::<$cell>::remove(cells, key, now);
            })*
        }
    };
}

for_each_kind!(cell_kind);

impl CellKind {
    /// The index in [`Self::ALL`].
    pub fn index(self) -> usize {
        Self::ALL.iter().take_while(|kind| **kind != self).count()
    }

    /// The kind with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| *kind as u8 == number)
    }
}

/// A set of kinds that share a memory budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPool {
    /// Counters, strikes and watched ratios.
    Counters,
    /// Blocks.
    Blocks,
    /// References.
    References,
    /// Markers of settled tickets.
    SettledMarkers,
}

impl MemoryPool {
    /// Every pool.
    pub const ALL: [Self; 4] =
        [Self::Counters, Self::Blocks, Self::References, Self::SettledMarkers];

    /// The name for operators, in `/readyz` and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::Blocks => "blocks",
            Self::References => "references",
            Self::SettledMarkers => "settled-markers",
        }
    }
}

/// The stored state of one kind for one key.
pub trait Cell: Sized {
    /// Whether the cell never has bytes on the heap.
    const IS_INLINE: bool = true;

    /// The instant from which the cell counts as absent: nothing that it holds has an effect any
    /// more. A store may free it at any time after that, without changing a decision.
    fn expires_at(&self) -> Time;

    /// Bytes on the heap.
    #[inline]
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Bytes on the heap with the allocator's overhead, for the memory budget of the store.
    #[inline]
    fn weight(&self) -> usize {
        allocation_bytes(self.heap_bytes())
    }
}

/// The size of an allocation plus 16 bytes of allocator overhead.
pub const fn allocation_bytes(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes + 16 }
}

/// A table of cells of one kind, by key.
pub trait CellTable<C: Cell> {
    /// The cell, unless it has expired by `now`. For reading, and for changes in place that leave
    /// its heap bytes as they are.
    fn get(&mut self, key: Key, now: Time) -> Option<&mut C>;
    /// Changes the cell in place and accounts for its new size; `None` if there is no cell.
    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R>;
    /// Writes a cell. Returns `false` if the table has no room for a new one.
    fn put(&mut self, key: Key, cell: C, now: Time) -> bool;
    /// Removes a cell. Returns whether there was one that had not expired.
    fn remove(&mut self, key: Key, now: Time) -> bool;
    /// Reserves the place of a new counter: at its own key, or in an overflow cell of the `family`
    /// if memory is full.
    fn counter_slot(&mut self, _key: Key, _family: u64, _now: Time) -> CounterSlot {
        CounterSlot::Own
    }
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
    fn a_kind_is_at_its_index_in_the_list() {
        let indices: Vec<usize> = CellKind::ALL.iter().map(|kind| kind.index()).collect();
        assert_eq!(indices, (0..CellKind::ALL.len()).collect::<Vec<_>>());
    }

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
