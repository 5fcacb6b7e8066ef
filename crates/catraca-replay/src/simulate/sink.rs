//! The results of a run, and the trait of their receivers.

use std::io;

use catraca::Decision;
use catraca::settlement::{CreditResult, Settlement};

use super::event::{At, CheckEvent};

/// A receiver of results. The index of a check's result identifies it when its outcome is settled
/// later.
pub trait Sink {
    /// A check was decided.
    fn on_check(&mut self, line: &CheckResult<'_, '_>) -> io::Result<ResultIndex>;
    /// The outcome of an earlier check was settled.
    fn on_settle(&mut self, index: ResultIndex, settlement: &Settlement) -> io::Result<()>;
    /// A credit or an operator's act was executed.
    fn on_act(&mut self, at: &At<'_>, act: &ActResult) -> io::Result<()>;
    /// A line is bad; with an index, the outcome of that result could not be settled.
    fn on_bad_line(
        &mut self,
        number: u64,
        index: Option<ResultIndex>,
        error: &str,
    ) -> io::Result<()>;
    /// The number of results held back by a pending settlement.
    fn pending(&self) -> usize;
    /// The run has ended.
    fn finish(&mut self) -> io::Result<()>;
}

/// Passes results to both; the indexes are the second one's.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn on_check(&mut self, line: &CheckResult<'_, '_>) -> io::Result<ResultIndex> {
        self.0.on_check(line)?;
        self.1.on_check(line)
    }

    fn on_settle(&mut self, index: ResultIndex, settlement: &Settlement) -> io::Result<()> {
        self.0.on_settle(index, settlement)?;
        self.1.on_settle(index, settlement)
    }

    fn on_act(&mut self, at: &At<'_>, act: &ActResult) -> io::Result<()> {
        self.0.on_act(at, act)?;
        self.1.on_act(at, act)
    }

    fn on_bad_line(
        &mut self,
        number: u64,
        index: Option<ResultIndex>,
        error: &str,
    ) -> io::Result<()> {
        self.0.on_bad_line(number, index, error)?;
        self.1.on_bad_line(number, index, error)
    }

    fn pending(&self) -> usize {
        self.0.pending().max(self.1.pending())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish()?;
        self.1.finish()
    }
}

/// The index of a result, from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResultIndex(pub u64);

/// A check with its decision.
pub struct CheckResult<'r, 't> {
    /// The instant.
    pub at: &'r At<'t>,
    /// The check.
    pub event: &'r CheckEvent<'t>,
    /// The decision.
    pub decision: &'r Decision,
    /// The state of its outcome.
    pub settled: SettleResult<'r>,
}

/// The state of a check's outcome.
pub enum SettleResult<'a> {
    /// The line has no outcome.
    NotGiven,
    /// The check returned no ticket: it was denied, or no policy of its gate settles.
    Ignored,
    /// Settled at once.
    Done(&'a Settlement),
    /// Due later.
    Waiting,
}

/// The result of a credit or an operator's act.
#[derive(Debug)]
pub enum ActResult {
    /// A later event that gives units back.
    Credit(CreditResult),
    /// Whether a block was started or lengthened.
    Block(bool),
    /// Whether there was an active block.
    Unblock(bool),
    /// A reset always succeeds.
    Reset,
}
