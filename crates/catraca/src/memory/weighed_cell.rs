//! Slots of a table: the key, the cell, and the heap bytes that the table accounts for it.
//!
//! The slot of a bucket must stay at 48 bytes: stores hold millions of them.

use catraca_core::batch::RowSettlement;
use catraca_core::cell::{
    Block, Bucket, Cell, FixedWindow, InFlight, RatioWatch, SettledMarker, SlidingWindow,
};
use catraca_core::digest::Key;

/// A cell that a table can hold, with its heap size.
pub(super) trait WeighedCell: Cell {
    /// How the slot remembers the accounted weight.
    type Accounted: AccountedWeight;

    /// Heap bytes of the cell, including the allocator's overhead.
    fn weight(&self) -> usize {
        allocation_bytes(self.heap_bytes())
    }
}

/// The weight with which a cell was last accounted.
pub(super) trait AccountedWeight: Copy + std::fmt::Debug {
    fn of(weight: usize) -> Self;
    /// The remembered weight, or `present` if none is remembered.
    fn or(self, present: impl FnOnce() -> usize) -> usize;
}

/// For cells whose weight changes only inside [`super::table::Table`], which accounts for it: the
/// current weight is the accounted one, and no bytes are needed.
impl AccountedWeight for () {
    #[inline]
    fn of(_: usize) -> Self {}

    #[inline]
    fn or(self, present: impl FnOnce() -> usize) -> usize {
        present()
    }
}

/// For cells whose weight may change through the reference that `get` returns, where the table
/// cannot account for it.
impl AccountedWeight for u32 {
    #[inline]
    fn of(weight: usize) -> Self {
        Self::try_from(weight).unwrap_or(Self::MAX)
    }

    #[inline]
    fn or(self, _: impl FnOnce() -> usize) -> usize {
        self as usize
    }
}

/// An occupied slot of a table.
#[derive(Debug)]
pub(super) struct Slot<C: WeighedCell> {
    pub key: Key,
    pub cell: C,
    pub accounted: C::Accounted,
}

const _: () = assert!(size_of::<Slot<Bucket>>() == 48);

impl<C: WeighedCell> Slot<C> {
    #[inline]
    pub fn new(key: Key, cell: C) -> Self {
        let accounted = C::Accounted::of(cell.weight());
        Self { key, cell, accounted }
    }

    /// The weight that the table's total contains for this cell.
    #[inline]
    pub fn accounted_weight(&self) -> usize {
        self.accounted.or(|| self.cell.weight())
    }
}

impl WeighedCell for Bucket {
    type Accounted = ();

    #[inline]
    fn weight(&self) -> usize {
        0
    }
}

impl WeighedCell for FixedWindow {
    type Accounted = ();

    #[inline]
    fn weight(&self) -> usize {
        0
    }
}

/// Reading a window with another number of spans than the catalog has now replaces it by an empty
/// one, in place.
impl WeighedCell for SlidingWindow {
    type Accounted = u32;
}

impl WeighedCell for InFlight {
    type Accounted = ();
}

impl WeighedCell for RatioWatch {
    type Accounted = ();
}

impl WeighedCell for SettledMarker {
    type Accounted = ();
}

/// Texts count in full for every block, although blocks of the same rule share them.
impl WeighedCell for Block {
    type Accounted = ();

    fn weight(&self) -> usize {
        let texts = [&self.note.reason, &self.note.message].into_iter().flatten();
        // An `Arc<str>` allocates two reference counts and the text.
        let counts = 2 * size_of::<usize>();
        texts.map(|text| allocation_bytes(text.len() + counts)).sum::<usize>() + self.heap_bytes()
    }
}

/// The expected weight of a marker with two rows: it is inserted empty and filled right after.
pub(super) const MARK_WEIGHT: usize = allocation_bytes(2 * size_of::<RowSettlement>());

/// The size of an allocation plus 16 bytes of allocator overhead.
pub(super) const fn allocation_bytes(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes + 16 }
}
