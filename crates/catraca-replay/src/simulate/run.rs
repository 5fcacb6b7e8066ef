//! Replays lines through the engine: sets the virtual clock, executes each line, and settles
//! outcomes when they are due.
//!
//! A settlement due at an instant runs before the lines of that instant; several due at one
//! instant run in the order of their lines. A bad line changes no state and does not advance the
//! clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use anyhow::bail;
use catraca::settlement::CreditResult;
use catraca::{Engine, Error, ManualClock, Outcome, Settle, Span, Time};
use catraca_core::request::DEFAULT_NAMESPACE;

use super::access_log::{LineError, Reader};
use super::event::{
    At, BlockEvent, CheckEvent, CreditEvent, Event, EventKind, PolicySubject, TimeNotation,
};
use super::line_reader::{HistoryLine, LINE_BYTES_MAX};
use super::sink::{ActResult, CheckResult, ResultIndex, SettleResult, Sink};

/// The most lines that may wait for an outcome, or be held back by one; bounds memory.
const PENDING_MAX: usize = 1_000_000;
/// How much older than an earlier line a line of an access log may be: servers write a line when
/// its request ends, and some log the time when it started.
const LATE_MAX: Span = Span::from_secs(3_600);

/// One run over one history.
pub struct Run<'s, S> {
    reader: &'s Reader<'s>,
    engine: &'s Engine,
    clock: ManualClock,
    /// The instant of the last good line, or of a later settlement.
    now: Time,
    due: BinaryHeap<Reverse<DueSettlement>>,
    /// The longest lifetime of a ticket under this catalog.
    longest_hold: Span,
    bad: u64,
    late: LateLines,
    sink: &'s mut S,
}

/// Lines of a log that are older than an earlier line; they are decided in the order of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LateLines {
    /// Number of lines.
    pub lines: u64,
    /// The largest delay.
    pub most: Span,
}

/// The result of a run.
#[derive(Clone, Copy, Debug)]
pub struct ReplayResult {
    /// Whether there was no bad line.
    pub fine: bool,
    /// Lines out of order.
    pub late: LateLines,
    /// Charges that went to an overflow cell shared by several keys, because memory was full.
    pub shared: u64,
    /// Blocks that were not started, because memory was full.
    pub unblocked: u64,
}

/// A settlement that is due later.
struct DueSettlement {
    at: Time,
    index: ResultIndex,
    line: u64,
    ticket: String,
    outcome: Outcome,
}

/// Why a line has no result.
enum LineFailure {
    Bad(String),
    /// The line is valid, but the server would reject its request; the run still succeeds.
    Refused(String),
    Output(io::Error),
}

impl<'s, S: Sink> Run<'s, S> {
    /// A run that starts at the epoch.
    pub fn new(
        reader: &'s Reader<'s>,
        engine: &'s Engine,
        clock: ManualClock,
        sink: &'s mut S,
    ) -> Self {
        let catalog = engine.catalog();
        let longest_hold = catalog.policies.iter().map(|policy| policy.hold).max();
        Self {
            reader,
            engine,
            clock,
            now: Time::ZERO,
            due: BinaryHeap::new(),
            longest_hold: longest_hold.unwrap_or(Span::ZERO),
            bad: 0,
            late: LateLines::default(),
            sink,
        }
    }

    /// The receiver of the results.
    pub fn sink(&mut self) -> &mut S {
        self.sink
    }

    /// Executes one line.
    pub fn feed(&mut self, number: u64, line: HistoryLine<'_>) -> anyhow::Result<()> {
        let result = match line {
            HistoryLine::Text(text) => self.execute_line(number, text),
            HistoryLine::TooLong => {
                let error = format!("the line has more than {LINE_BYTES_MAX} bytes");
                Err(LineFailure::Bad(error))
            }
        };
        match result {
            Ok(()) => {}
            Err(LineFailure::Bad(error)) => self.count_bad_line(number, None, &error)?,
            Err(LineFailure::Refused(error)) => self.sink.on_bad_line(number, None, &error)?,
            Err(LineFailure::Output(error)) => return Err(error.into()),
        }
        if self.sink.pending().max(self.due.len()) > PENDING_MAX {
            bail!(
                "line {number}: more than {PENDING_MAX} lines wait for an outcome; reduce \
                 `after_ms`, or the `hold` of the policies, after which tickets expire"
            );
        }
        Ok(())
    }

    /// Settles what is still due, and returns the result.
    pub fn finish(mut self) -> anyhow::Result<ReplayResult> {
        self.settle_until(Time::FOREVER)?;
        self.sink.finish()?;
        let stats = self.engine.store().stats();
        Ok(ReplayResult {
            fine: self.bad == 0,
            late: self.late,
            shared: stats.overflowed,
            unblocked: stats.refused_blocks,
        })
    }

    fn count_bad_line(
        &mut self,
        number: u64,
        index: Option<ResultIndex>,
        error: &str,
    ) -> io::Result<()> {
        self.bad += 1;
        self.sink.on_bad_line(number, index, error)
    }

    fn execute_line(&mut self, number: u64, text: &[u8]) -> Result<(), LineFailure> {
        let reader = self.reader;
        let mut event = reader.read(text)?;
        let delay = self.now.since(event.at.time);
        if delay > Span::ZERO {
            if !reader.is_log() || delay > LATE_MAX {
                return Err(LineFailure::Bad(self.out_of_order_error(&event.at)));
            }
            // Virtual time must not go back: the line is decided at the time of the previous one.
            event.at.time = self.now;
        }
        let time = event.at.time;
        let due = self.due.peek().is_some_and(|due| due.0.at <= time);
        // A bad line must not advance the time, and settling what is due would. So the line is
        // validated first, while the clock still has the time of the previous line. A check
        // with nothing due is the common case and not evaluated twice: `check` itself changes no
        // state when it returns an error.
        if due || !matches!(event.kind, EventKind::Check(_)) {
            validate(self.engine, &event.kind)?;
        }
        if due {
            self.settle_until(time)?;
        }
        self.clock.set(time);
        let done = self.execute(number, &event);
        if !matches!(done, Err(LineFailure::Bad(_))) {
            self.now = time;
            self.late.count(delay);
        }
        // After a bad line, this sets the clock back to the previous good one.
        self.clock.set(self.now);
        done
    }

    fn out_of_order_error(&self, at: &At<'_>) -> String {
        let now = match at.written {
            TimeNotation::Millis(_) => (self.now.micros() / 1_000).to_string(),
            TimeNotation::Text(_) | TimeNotation::Logged(_) => self.now.to_rfc3339(),
        };
        let then = match &at.written {
            TimeNotation::Millis(millis) => millis.to_string(),
            TimeNotation::Text(text) => text.to_string(),
            TimeNotation::Logged(time) => {
                return format!(
                    "{time} is more than {LATE_MAX} before {now}, the time of an earlier line; put \
                     the oldest file first"
                );
            }
        };
        format!(
            "`at`: {then} is before {now}, the time of an earlier line; sort the events by time"
        )
    }

    fn settle_until(&mut self, time: Time) -> io::Result<()> {
        while self.due.peek().is_some_and(|due| due.0.at <= time) {
            let Some(Reverse(due)) = self.due.pop() else { break };
            self.now = due.at;
            self.clock.set(due.at);
            match self.engine.settle(&Settle::ticket(&due.ticket, &due.outcome)) {
                Ok(settlement) => self.sink.on_settle(due.index, &settlement)?,
                Err(error) => self.count_bad_line(due.line, Some(due.index), &error.to_string())?,
            }
        }
        Ok(())
    }

    fn execute(&mut self, number: u64, event: &Event<'_>) -> Result<(), LineFailure> {
        let act = match &event.kind {
            EventKind::Check(check) => return self.check(number, &event.at, check),
            EventKind::Credit(credit) => ActResult::Credit(self.credit(credit)?),
            EventKind::Block(block) => ActResult::Block(self.block(block)?),
            EventKind::Unblock(target) => ActResult::Unblock(self.unblock(target)?),
            EventKind::Reset(target) => {
                self.engine.reset(DEFAULT_NAMESPACE, &target.policy, &target.subject())?;
                ActResult::Reset
            }
        };
        Ok(self.sink.on_act(&event.at, &act)?)
    }

    fn check<'t>(
        &mut self,
        number: u64,
        at: &At<'t>,
        event: &CheckEvent<'t>,
    ) -> Result<(), LineFailure> {
        let mut decision = self.engine.check(&event.check())?;
        // A real ticket is sealed with random bytes: it would differ between runs, and is of no use
        // outside of this one.
        let ticket = decision.ticket.take();
        decision.ticket = ticket.as_ref().map(|_| format!("line-{number}"));
        let mut checked =
            CheckResult { at, event, decision: &decision, settled: SettleResult::NotGiven };
        let Some((outcome, after)) = &event.outcome else {
            self.sink.on_check(&checked)?;
            return Ok(());
        };
        let Some(ticket) = ticket else {
            checked.settled = SettleResult::Ignored;
            self.sink.on_check(&checked)?;
            return Ok(());
        };
        if *after == Span::ZERO {
            let settlement = self.engine.settle(&Settle::ticket(&ticket, outcome))?;
            checked.settled = SettleResult::Done(&settlement);
            self.sink.on_check(&checked)?;
            return Ok(());
        }
        checked.settled = SettleResult::Waiting;
        let index = self.sink.on_check(&checked)?;
        // After the longest hold the ticket has expired, and settling it later has the same result:
        // the cap bounds the number of waiting lines.
        let at = at.time.after((*after).min(self.longest_hold));
        self.due.push(Reverse(DueSettlement {
            at,
            index,
            line: number,
            ticket,
            outcome: outcome.clone(),
        }));
        Ok(())
    }

    fn credit(&self, credit: &CreditEvent<'_>) -> Result<CreditResult, LineFailure> {
        let subject = credit.subject();
        Ok(self.engine.credit(DEFAULT_NAMESPACE, &credit.reference, &credit.event, &subject)?)
    }

    fn block(&self, block: &BlockEvent<'_>) -> Result<bool, LineFailure> {
        let blocked = self.engine.block(&block.order())?;
        Ok(blocked.iter().any(|key| key.changed))
    }

    fn unblock(&self, target: &PolicySubject<'_>) -> Result<bool, LineFailure> {
        Ok(self.engine.unblock(DEFAULT_NAMESPACE, &target.policy, &target.subject())?)
    }
}

/// Returns the error that executing the line would return, without changing any state.
fn validate(engine: &Engine, kind: &EventKind<'_>) -> Result<(), Error> {
    match kind {
        EventKind::Check(check) => engine.peek(&check.check()).map(drop),
        EventKind::Credit(credit) => {
            let reference = &credit.reference;
            engine.validate_credit(DEFAULT_NAMESPACE, reference, &credit.event, &credit.subject())
        }
        EventKind::Block(block) => engine.validate_block(&block.order()),
        EventKind::Unblock(target) | EventKind::Reset(target) => {
            engine.validate_key_act(&target.policy, &target.subject())
        }
    }
}

impl LateLines {
    fn count(&mut self, delay: Span) {
        self.lines += u64::from(delay > Span::ZERO);
        self.most = self.most.max(delay);
    }
}

impl From<LineError> for LineFailure {
    fn from(error: LineError) -> Self {
        match error {
            LineError::Invalid(why) => Self::Bad(why),
            LineError::Refused(why) => Self::Refused(why),
        }
    }
}

impl From<String> for LineFailure {
    fn from(error: String) -> Self {
        Self::Bad(error)
    }
}

impl From<Error> for LineFailure {
    fn from(error: Error) -> Self {
        Self::Bad(error.to_string())
    }
}

impl From<io::Error> for LineFailure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl PartialEq for DueSettlement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for DueSettlement {}

impl PartialOrd for DueSettlement {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DueSettlement {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.index).cmp(&(other.at, other.index))
    }
}
