//! The results of lines, in the order in which the engine executed them.

use catraca::settlement::{CreditResult, Settlement};
use catraca::{Check, Decision, Time};

use super::event::TimeNotation;

/// One result of a run.
pub enum LineResult<'b> {
    /// A check was decided.
    Check(CheckResult<'b>),
    /// A credit or an operator's act was executed.
    Act(ResultInstant<'b>, ActResult),
    /// A line is bad, and changed nothing.
    BadLine(BadLine),
    /// The outcome of an earlier check was settled.
    Settled(ResultIndex, Settlement),
    /// The outcome of an earlier check could not be settled.
    SettleFailed(ResultIndex, BadLine),
    /// A block was started, or lengthened.
    BlockStarted {
        /// The name of the policy.
        policy: String,
        /// The instant.
        at: Time,
    },
}

/// The index of a result, from one, among those that have a line of their own. It identifies a
/// check when its outcome is settled later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResultIndex(pub u64);

/// A check with its decision.
pub struct CheckResult<'b> {
    /// The instant.
    pub at: ResultInstant<'b>,
    /// The check.
    pub check: Check<'b>,
    /// The decision.
    pub decision: Decision,
    /// The state of its outcome.
    pub settled: SettleResult,
}

/// The instant of a line.
#[derive(Clone, Copy)]
pub struct ResultInstant<'b> {
    /// The instant at which the line was decided.
    pub time: Time,
    /// As the line writes its instant.
    pub written: &'b TimeNotation<'b>,
}

/// The state of a check's outcome.
pub enum SettleResult {
    /// The line has no outcome.
    NotGiven,
    /// The check returned no ticket: it was denied, or no policy of its gate settles.
    Ignored,
    /// Settled at once.
    Done(Settlement),
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

/// A line that is bad.
pub struct BadLine {
    /// Its number, from one.
    pub number: u64,
    /// Why it is bad.
    pub error: String,
}
