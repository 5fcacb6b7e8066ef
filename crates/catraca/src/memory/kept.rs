//! Cells as a table holds them: the key, the cell, and what it weighs outside its slot.
//!
//! Must not make a bucket's slot larger than 48 bytes: a million of them is the common case.

use catraca_core::batch::RowSettled;
use catraca_core::cell::{Block, Bucket, Cell, Fixed, Leases, Log, Mark, Watch};
use catraca_core::digest::Key;

/// A cell that a table can hold.
pub(super) trait Kept: Cell {
    /// What the slot notes of the cell's weight.
    type Booked: Booked;

    /// Bytes outside the slot.
    fn weight(&self) -> usize {
        allocated(self.heap_bytes())
    }
}

/// The weight that a cell was last accounted with.
pub(super) trait Booked: Copy + std::fmt::Debug {
    /// Notes a weight.
    fn of(weight: usize) -> Self;
    /// The noted weight; what is not noted is the present one.
    fn or(self, present: impl FnOnce() -> usize) -> usize;
}

/// For cells whose weight only changes where the table sees it.
impl Booked for () {
    #[inline]
    fn of(_: usize) -> Self {}

    #[inline]
    fn or(self, present: impl FnOnce() -> usize) -> usize {
        present()
    }
}

/// For cells whose weight may change behind the table's back.
impl Booked for u32 {
    #[inline]
    fn of(weight: usize) -> Self {
        Self::try_from(weight).unwrap_or(Self::MAX)
    }

    #[inline]
    fn or(self, _: impl FnOnce() -> usize) -> usize {
        self as usize
    }
}

/// One occupied place of a table.
#[derive(Debug)]
pub(super) struct Slot<C: Kept> {
    pub key: Key,
    pub cell: C,
    pub booked: C::Booked,
}

const _: () = assert!(size_of::<Slot<Bucket>>() == 48);

impl<C: Kept> Slot<C> {
    #[inline]
    pub fn new(key: Key, cell: C) -> Self {
        let booked = C::Booked::of(cell.weight());
        Self { key, cell, booked }
    }

    /// The weight that the table has in its books.
    #[inline]
    pub fn booked(&self) -> usize {
        self.booked.or(|| self.cell.weight())
    }
}

impl Kept for Bucket {
    type Booked = ();

    #[inline]
    fn weight(&self) -> usize {
        0
    }
}

impl Kept for Fixed {
    type Booked = ();

    #[inline]
    fn weight(&self) -> usize {
        0
    }
}

/// A change in the number of a policy's windows starts a log again when it is merely looked at.
impl Kept for Log {
    type Booked = u32;
}

impl Kept for Leases {
    type Booked = ();
}

impl Kept for Watch {
    type Booked = ();
}

impl Kept for Mark {
    type Booked = ();
}

/// Texts count in full for every block, although blocks of one rule share them.
impl Kept for Block {
    type Booked = ();

    fn weight(&self) -> usize {
        let texts = [&self.note.reason, &self.note.message].into_iter().flatten();
        let counts = 2 * size_of::<usize>();
        texts.map(|text| allocated(text.len() + counts)).sum::<usize>() + self.heap_bytes()
    }
}

/// What a mark with a few rows is going to weigh; it is written empty and filled at once.
pub(super) const MARK_WEIGHT: usize = allocated(2 * size_of::<RowSettled>());

/// Bytes of an allocation with what the allocator itself needs for it.
pub(super) const fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes + 16 }
}
