//! Where results of a run go, and what they are.
//!
//! Must not decide anything, nor know how results are shown.

use std::io;

use catraca::Decision;
use catraca::settlement::{Credited, Settlement};

use super::event::{At, CheckEvent};

/// Where results go. Slots number them, so that a later settle finds its own.
pub trait Sink {
    /// A check was decided.
    fn checked(&mut self, line: &Checked<'_, '_>) -> io::Result<Slot>;
    /// What the outcome of an earlier check came to.
    fn settled(&mut self, slot: Slot, settlement: &Settlement) -> io::Result<()>;
    /// An operator's act or a credit was done.
    fn acted(&mut self, at: &At<'_>, act: &Act) -> io::Result<()>;
    /// A line is bad; with a slot, it is one whose outcome could not be settled.
    fn refused(&mut self, number: u64, slot: Option<Slot>, error: &str) -> io::Result<()>;
    /// How many lines cannot be shown before an outcome is known.
    fn waiting(&self) -> usize;
    /// Nothing more comes.
    fn finish(&mut self) -> io::Result<()>;
}

/// Both hear everything; the second has the places.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn checked(&mut self, line: &Checked<'_, '_>) -> io::Result<Slot> {
        self.0.checked(line)?;
        self.1.checked(line)
    }

    fn settled(&mut self, slot: Slot, settlement: &Settlement) -> io::Result<()> {
        self.0.settled(slot, settlement)?;
        self.1.settled(slot, settlement)
    }

    fn acted(&mut self, at: &At<'_>, act: &Act) -> io::Result<()> {
        self.0.acted(at, act)?;
        self.1.acted(at, act)
    }

    fn refused(&mut self, number: u64, slot: Option<Slot>, error: &str) -> io::Result<()> {
        self.0.refused(number, slot, error)?;
        self.1.refused(number, slot, error)
    }

    fn waiting(&self) -> usize {
        self.0.waiting().max(self.1.waiting())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish()?;
        self.1.finish()
    }
}

/// A line's place among the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub u64);

/// A check with its decision.
pub struct Checked<'r, 't> {
    /// When it was asked.
    pub at: &'r At<'t>,
    /// What was asked.
    pub event: &'r CheckEvent<'t>,
    /// The answer.
    pub decision: &'r Decision,
    /// What came of its outcome.
    pub settled: Settled<'r>,
}

/// What came of a check's outcome.
pub enum Settled<'a> {
    /// The line has none.
    NotGiven,
    /// The check was denied, or nothing in its gate has a use for it.
    Ignored,
    /// It was settled at once.
    Done(&'a Settlement),
    /// It is due later.
    Waiting,
}

/// What an act came to.
#[derive(Debug)]
pub enum Act {
    /// A late event.
    Credit(Credited),
    /// Whether the block moved the end of what stood.
    Block(bool),
    /// Whether a block stood.
    Unblock(bool),
    /// Always done.
    Reset,
}
