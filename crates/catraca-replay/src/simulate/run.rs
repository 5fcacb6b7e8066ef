//! Executes lines in their order: sets the virtual clock, calls the engine, and settles outcomes
//! when they are due.
//!
//! A settlement due at an instant runs before the lines of that instant; several due at one
//! instant run in the order of their lines. A bad line changes no state and does not advance the
//! clock.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use anyhow::bail;
use catraca::engine::CheckPlan;
use catraca::settlement::{CreditResult, Settlement};
use catraca::{BlockProposal, Credit, Engine, Error, ManualClock, Outcome, Span, Time};
use catraca_core::request::DEFAULT_NAMESPACE;
use catraca_core::ticket::Ticket;

use super::access_log::LineError;
use super::due_settlement::DueSettlement;
use super::event::{ActEvent, At, CheckEvent, CreditEvent, PolicySubject, TimeNotation};
use super::line_result::{
    ActResult, BadLine, CheckResult, LineResult, ResultIndex, ResultInstant, SettleResult,
};
use super::planned_line::{PlannedEvent, PlannedKind, PlannedLine};
use super::summary::EventCounts;

/// The most lines that may wait for an outcome, or be held back by one; bounds memory.
const PENDING_MAX: usize = 1_000_000;
/// How much older than an earlier line a line of an access log may be: servers write a line when
/// its request ends, and some log the time when it started.
const LATE_MAX: Span = Span::from_secs(3_600);

/// One run over one history.
pub struct Run<'e> {
    engine: &'e Engine,
    clock: ManualClock,
    /// The events of the engine, if anything reads them.
    events: Option<EventCounts>,
    /// Whether lines may be slightly out of order, as those of an access log.
    is_log: bool,
    /// The instant of the last good line, or of a later settlement.
    now: Time,
    due: BinaryHeap<Reverse<DueSettlement>>,
    /// The results that wait for an outcome, if they hold back the results after them.
    waiting: Option<BTreeSet<ResultIndex>>,
    /// The index of the last result.
    last_index: ResultIndex,
    /// The longest lifetime of a ticket under this catalog.
    longest_hold: Span,
    bad: u64,
    late: LateLines,
}

/// How a run treats its history.
#[derive(Clone, Copy)]
pub struct RunOptions {
    /// Whether lines may be slightly out of order, as those of an access log.
    pub is_log: bool,
    /// Whether a result that waits for an outcome holds back the results after it.
    pub holds_back: bool,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Why a line has no result.
enum LineFailure {
    Bad(String),
    /// The line is valid, but the server would reject its request; the run still succeeds.
    Refused(String),
}

type Results<'b> = Vec<LineResult<'b>>;

impl<'e> Run<'e> {
    /// A run that starts at the epoch.
    pub fn new(
        engine: &'e Engine,
        clock: ManualClock,
        events: Option<EventCounts>,
        options: RunOptions,
    ) -> Self {
        let catalog = engine.catalog();
        let longest_hold = catalog.policies.iter().map(|policy| policy.hold).max();
        Self {
            engine,
            clock,
            events,
            is_log: options.is_log,
            now: Time::ZERO,
            due: BinaryHeap::new(),
            waiting: options.holds_back.then(BTreeSet::new),
            last_index: ResultIndex(0),
            longest_hold: longest_hold.unwrap_or(Span::ZERO),
            bad: 0,
            late: LateLines::default(),
        }
    }

    /// Executes the next lines.
    pub fn execute<'b>(&mut self, lines: Vec<PlannedLine<'b, '_>>) -> anyhow::Result<Results<'b>> {
        let mut results = Vec::with_capacity(lines.len());
        for PlannedLine { number, event } in lines {
            let executed = match event {
                Ok(event) => self.execute_line(number, event, &mut results),
                Err(LineError::Invalid(why)) => Err(LineFailure::Bad(why.clone())),
                Err(LineError::Refused(why)) => Err(LineFailure::Refused(why.clone())),
            };
            if let Err(failure) = executed {
                self.push_bad_line(number, failure, &mut results);
            }
            if self.pending() > PENDING_MAX {
                bail!(
                    "line {number}: more than {PENDING_MAX} lines wait for an outcome; reduce \
                     `after_ms`, or the `hold` of the policies, after which tickets expire"
                );
            }
        }
        Ok(results)
    }

    /// Settles what is still due.
    pub fn finish(&mut self) -> Results<'static> {
        let mut results = Vec::new();
        self.settle_until(Time::FOREVER, &mut results);
        self.push_started_blocks(&mut results);
        results
    }

    /// The result so far.
    pub fn result(&self) -> ReplayResult {
        let stats = self.engine.store().stats();
        ReplayResult {
            fine: self.bad == 0,
            late: self.late,
            shared: stats.overflowed,
            unblocked: stats.refused_blocks,
        }
    }

    /// The number of lines that wait for an outcome, or are held back by one.
    fn pending(&self) -> usize {
        let first = self.waiting.as_ref().and_then(BTreeSet::first);
        let held_back = first.map_or(0, |first| self.last_index.0 - first.0 + 1);
        self.due.len().max(usize::try_from(held_back).unwrap_or(usize::MAX))
    }

    fn next_index(&mut self) -> ResultIndex {
        self.last_index.0 += 1;
        self.last_index
    }

    fn push_bad_line(&mut self, number: u64, failure: LineFailure, results: &mut Results<'_>) {
        self.next_index();
        let error = match failure {
            LineFailure::Bad(error) => {
                self.bad += 1;
                error
            }
            LineFailure::Refused(error) => error,
        };
        results.push(LineResult::BadLine(BadLine { number, error }));
    }

    fn push_started_blocks(&self, results: &mut Results<'_>) {
        let Some(events) = &self.events else { return };
        let started = events.take_started();
        let blocks = started.into_iter();
        results.extend(blocks.map(|(policy, at)| LineResult::BlockStarted { policy, at }));
    }

    fn execute_line<'b>(
        &mut self,
        number: u64,
        event: PlannedEvent<'b, '_>,
        results: &mut Results<'b>,
    ) -> Result<(), LineFailure> {
        let delay = self.now.since(event.at.time);
        if delay > Span::ZERO && (!self.is_log || delay > LATE_MAX) {
            return Err(LineFailure::Bad(self.out_of_order_error(event.at)));
        }
        // Virtual time must not go back: a late line is decided at the time of the previous one.
        let time = event.at.time.max(self.now);
        let due = self.due.peek().is_some_and(|due| due.0.at <= time);
        // A bad line must not advance the time, and settling what is due would. So the line is
        // validated first, while the clock still has the time of the previous line.
        if due || matches!(event.kind, PlannedKind::Act(_)) {
            self.validate(&event.kind)?;
        }
        if due {
            self.settle_until(time, results);
        }
        self.clock.set(time);
        let at = ResultInstant { time, written: &event.at.written };
        let executed = self.execute_kind(number, at, event.kind, results);
        if executed.is_ok() {
            self.now = time;
            self.late.count(delay);
            self.push_started_blocks(results);
        }
        // After a bad line, this sets the clock back to the previous good one.
        self.clock.set(self.now);
        executed
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

    fn settle_until(&mut self, time: Time, results: &mut Results<'_>) {
        while self.due.peek().is_some_and(|due| due.0.at <= time) {
            let Some(Reverse(due)) = self.due.pop() else { break };
            self.now = due.at;
            self.clock.set(due.at);
            if let Some(waiting) = &mut self.waiting {
                waiting.remove(&due.index);
            }
            results.push(match self.settle(due.ticket, &due.outcome) {
                Ok(settlement) => LineResult::Settled(due.index, settlement),
                Err(error) => {
                    self.bad += 1;
                    let bad = BadLine { number: due.line, error: error.to_string() };
                    LineResult::SettleFailed(due.index, bad)
                }
            });
        }
    }

    fn execute_kind<'b>(
        &mut self,
        number: u64,
        at: ResultInstant<'b>,
        kind: PlannedKind<'b, '_>,
        results: &mut Results<'b>,
    ) -> Result<(), LineFailure> {
        match kind {
            PlannedKind::Check(event, plan) => {
                let result = self.check(number, at, event, plan?)?;
                results.push(LineResult::Check(result));
            }
            PlannedKind::Act(act) => {
                let act = self.act(act)?;
                self.next_index();
                results.push(LineResult::Act(at, act));
            }
        }
        Ok(())
    }

    /// Returns the error that executing the line would return, without changing any state.
    fn validate(&self, kind: &PlannedKind<'_, '_>) -> Result<(), LineFailure> {
        let engine = self.engine;
        let act = match kind {
            PlannedKind::Check(_, Ok(plan)) => return Ok(engine.validate_planned(plan)?),
            PlannedKind::Check(_, Err(error)) => return Err(LineFailure::Bad(error.to_string())),
            PlannedKind::Act(act) => act,
        };
        match act {
            ActEvent::Credit(credit) => {
                let reference = &credit.reference;
                let subject = credit.subject();
                engine.validate_credit(&Credit::new(reference, &credit.event, &subject))?;
            }
            ActEvent::Block(target, proposal) => {
                engine.validate_block(&target.policy, &target.subject(), proposal)?;
            }
            ActEvent::Unblock(target) | ActEvent::Reset(target) => {
                engine.validate_key_act(&target.policy, &target.subject())?;
            }
        }
        Ok(())
    }

    fn act(&self, act: &ActEvent<'_>) -> Result<ActResult, LineFailure> {
        Ok(match act {
            ActEvent::Credit(credit) => ActResult::Credit(self.credit(credit)?),
            ActEvent::Block(target, proposal) => ActResult::Block(self.block(target, proposal)?),
            ActEvent::Unblock(target) => ActResult::Unblock(self.unblock(target)?),
            ActEvent::Reset(target) => {
                self.engine.reset(DEFAULT_NAMESPACE, &target.policy, &target.subject())?;
                ActResult::Reset
            }
        })
    }

    fn check<'b>(
        &mut self,
        number: u64,
        at: ResultInstant<'b>,
        event: &'b CheckEvent<'_>,
        plan: Box<CheckPlan<'_, '_>>,
    ) -> Result<CheckResult<'b>, LineFailure> {
        let (mut decision, ticket) = self.engine.check_planned(plan)?;
        // A sealed ticket has random bytes: it would differ between runs, and is of no use outside
        // of this one.
        decision.ticket = ticket.as_ref().map(|_| format!("line-{number}"));
        let index = ResultIndex(self.last_index.0 + 1);
        let settled = match (&event.outcome, ticket) {
            (None, _) => SettleResult::NotGiven,
            (Some(_), None) => SettleResult::Ignored,
            (Some((outcome, after)), Some(ticket)) if *after == Span::ZERO => {
                SettleResult::Done(self.settle(ticket, outcome)?)
            }
            (Some((outcome, after)), Some(ticket)) => {
                // After the longest hold the ticket has expired, and settling it later has the same
                // result: the cap bounds the number of waiting lines.
                let at = at.time.after((*after).min(self.longest_hold));
                let outcome = outcome.clone();
                self.settle_later(DueSettlement { at, index, line: number, ticket, outcome });
                SettleResult::Waiting
            }
        };
        self.last_index = index;
        Ok(CheckResult { at, check: event.check(), decision, settled })
    }

    fn settle(&self, ticket: Ticket, outcome: &Outcome) -> Result<Settlement, Error> {
        self.engine.settle_unsealed(DEFAULT_NAMESPACE, ticket, outcome)
    }

    fn settle_later(&mut self, due: DueSettlement) {
        if let Some(waiting) = &mut self.waiting {
            waiting.insert(due.index);
        }
        self.due.push(Reverse(due));
    }

    fn credit(&self, credit: &CreditEvent<'_>) -> Result<CreditResult, LineFailure> {
        let subject = credit.subject();
        Ok(self.engine.credit(&Credit::new(&credit.reference, &credit.event, &subject))?)
    }

    fn block(
        &self,
        target: &PolicySubject<'_>,
        proposal: &BlockProposal,
    ) -> Result<bool, LineFailure> {
        let subject = target.subject();
        let blocked =
            self.engine.block(DEFAULT_NAMESPACE, &target.policy, &subject, proposal.clone())?;
        Ok(blocked.iter().any(|(_, reply)| reply.changed))
    }

    fn unblock(&self, target: &PolicySubject<'_>) -> Result<bool, LineFailure> {
        Ok(self.engine.unblock(DEFAULT_NAMESPACE, &target.policy, &target.subject())?)
    }
}

impl LateLines {
    fn count(&mut self, delay: Span) {
        self.lines += u64::from(delay > Span::ZERO);
        self.most = self.most.max(delay);
    }
}

impl From<Error> for LineFailure {
    fn from(error: Error) -> Self {
        Self::Bad(error.to_string())
    }
}
