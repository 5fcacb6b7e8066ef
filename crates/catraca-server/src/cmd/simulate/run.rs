//! The run: virtual time, the outcomes that are due, and every line in its turn.
//!
//! A settle due at an instant runs before the lines of that instant; of several, the one due first
//! comes first, then the one of the earlier line. A bad line changes nothing, not even the time.
//! Must not know how results are shown.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use anyhow::bail;
use catraca::settlement::Credited;
use catraca::{Engine, ManualClock, Outcome, Settle, Span, Time};
use catraca_core::request::DEFAULT_NAMESPACE;

use super::early;
use super::event::{At, BlockEvent, CheckEvent, CreditEvent, Event, Kind, Target, Written};
use super::lines::{LINE_BYTES_MAX, Line};
use super::log::{LineError, Reader};
use super::sink::{Act, Checked, Settled, Sink, Slot};

/// The most lines that may wait for an outcome, or behind one that does.
const WAITING_MAX: usize = 1_000_000;
/// How far behind the one before it a line of an access log may be: servers write a line when its
/// request ends, and some write when it began.
const LATE_MAX: Span = Span::from_secs(3_600);

/// One run over one history.
pub struct Run<'s, S> {
    reader: &'s Reader<'s>,
    engine: &'s Engine,
    clock: ManualClock,
    /// The instant of the last good line, or of a later settle.
    now: Time,
    due: BinaryHeap<Reverse<Due>>,
    /// No ticket of this catalog lives longer.
    longest_hold: Span,
    bad: u64,
    late: Late,
    sink: &'s mut S,
}

/// Lines of a log that were written after later ones, and decided in the order of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// How many.
    pub lines: u64,
    /// How late the latest was.
    pub most: Span,
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Whether every line was good.
    pub fine: bool,
    /// What was late.
    pub late: Late,
    /// How often a caller was counted in a cell that others share, for want of memory.
    pub shared: u64,
    /// Blocks that were not started, for want of memory.
    pub unblocked: u64,
}

/// An outcome that is due later.
struct Due {
    at: Time,
    slot: Slot,
    line: u64,
    ticket: String,
    outcome: Outcome,
}

/// Why a line has no result.
enum Trouble {
    Bad(String),
    /// The line is fine and the server would refuse its request: the run goes on, and succeeds.
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
        let holds = engine.catalog();
        let longest_hold = holds.policies.iter().map(|policy| policy.hold).max();
        let (now, due) = (Time::ZERO, BinaryHeap::new());
        let longest_hold = longest_hold.unwrap_or(Span::ZERO);
        let late = Late::default();
        Self { reader, engine, clock, now, due, longest_hold, bad: 0, late, sink }
    }

    /// Where results go.
    pub fn sink(&mut self) -> &mut S {
        self.sink
    }

    /// Takes one line.
    pub fn feed(&mut self, number: u64, line: Line<'_>) -> anyhow::Result<()> {
        let done = match line {
            Line::Text(text) => self.line(number, text),
            Line::TooLong => {
                let error = format!("the line has more than {LINE_BYTES_MAX} bytes");
                Err(Trouble::Bad(error))
            }
        };
        match done {
            Ok(()) => {}
            Err(Trouble::Bad(error)) => self.refuse(number, None, &error)?,
            Err(Trouble::Refused(error)) => self.sink.refused(number, None, &error)?,
            Err(Trouble::Output(error)) => return Err(error.into()),
        }
        if self.sink.waiting().max(self.due.len()) > WAITING_MAX {
            bail!(
                "line {number}: more than {WAITING_MAX} lines wait for an outcome; shorten \
                 `after_ms`, or the `hold` of the policies, beyond which no outcome matters"
            );
        }
        Ok(())
    }

    /// Runs what is still due; says how it went.
    pub fn finish(mut self) -> anyhow::Result<Ended> {
        self.settle_until(Time::FOREVER)?;
        self.sink.finish()?;
        let stats = self.engine.store().stats();
        let (shared, unblocked) = (stats.shared, stats.refused_blocks);
        Ok(Ended { fine: self.bad == 0, late: self.late, shared, unblocked })
    }

    fn refuse(&mut self, number: u64, slot: Option<Slot>, error: &str) -> io::Result<()> {
        self.bad += 1;
        self.sink.refused(number, slot, error)
    }

    fn line(&mut self, number: u64, text: &[u8]) -> Result<(), Trouble> {
        let reader = self.reader;
        let mut event = reader.read(text)?;
        let behind = self.now.since(event.at.time);
        if behind > Span::ZERO {
            if !reader.is_log() || behind > LATE_MAX {
                return Err(Trouble::Bad(self.back_in_time(&event.at)));
            }
            event.at.time = self.now;
        }
        let time = event.at.time;
        let due = self.due.peek().is_some_and(|due| due.0.at <= time);
        if due || !matches!(event.kind, Kind::Check(_)) {
            early::refuse(self.engine, &event.kind)?;
        }
        if due {
            self.settle_until(time)?;
        }
        self.clock.set(time);
        let done = self.act(number, &event);
        if !matches!(done, Err(Trouble::Bad(_))) {
            self.now = time;
            self.late.count(behind);
        }
        self.clock.set(self.now);
        done
    }

    fn back_in_time(&self, at: &At<'_>) -> String {
        let now = match at.written {
            Written::Millis(_) => (self.now.micros() / 1_000).to_string(),
            Written::Text(_) | Written::Logged(_) => self.now.to_rfc3339(),
        };
        let then = match &at.written {
            Written::Millis(millis) => millis.to_string(),
            Written::Text(text) => text.to_string(),
            Written::Logged(time) => {
                return format!(
                    "{time} is more than {LATE_MAX} before {now}, where the history already is; \
                     put the oldest file first"
                );
            }
        };
        format!(
            "`at`: {then} is before {now}, where the history already is; sort the events by time"
        )
    }

    fn settle_until(&mut self, time: Time) -> io::Result<()> {
        while self.due.peek().is_some_and(|due| due.0.at <= time) {
            let Some(Reverse(due)) = self.due.pop() else { break };
            self.now = due.at;
            self.clock.set(due.at);
            match self.engine.settle(&Settle::ticket(&due.ticket, &due.outcome)) {
                Ok(settlement) => self.sink.settled(due.slot, &settlement)?,
                Err(error) => self.refuse(due.line, Some(due.slot), &error.to_string())?,
            }
        }
        Ok(())
    }

    fn act(&mut self, number: u64, event: &Event<'_>) -> Result<(), Trouble> {
        let act = match &event.kind {
            Kind::Check(check) => return self.check(number, &event.at, check),
            Kind::Credit(credit) => Act::Credit(self.credit(credit)?),
            Kind::Block(block) => Act::Block(self.block(block)?),
            Kind::Unblock(target) => Act::Unblock(self.unblock(target)?),
            Kind::Reset(target) => {
                self.engine.reset(DEFAULT_NAMESPACE, &target.policy, &target.subject())?;
                Act::Reset
            }
        };
        Ok(self.sink.acted(&event.at, &act)?)
    }

    fn check<'t>(
        &mut self,
        number: u64,
        at: &At<'t>,
        event: &CheckEvent<'t>,
    ) -> Result<(), Trouble> {
        let mut decision = self.engine.check(&event.check())?;
        // A sealed ticket differs from run to run and opens nothing outside of this one.
        let ticket = decision.ticket.take();
        decision.ticket = ticket.as_ref().map(|_| format!("line-{number}"));
        let mut checked = Checked { at, event, decision: &decision, settled: Settled::NotGiven };
        let Some((outcome, after)) = &event.outcome else {
            self.sink.checked(&checked)?;
            return Ok(());
        };
        let Some(ticket) = ticket else {
            checked.settled = Settled::Ignored;
            self.sink.checked(&checked)?;
            return Ok(());
        };
        if *after == Span::ZERO {
            let settlement = self.engine.settle(&Settle::ticket(&ticket, outcome))?;
            checked.settled = Settled::Done(&settlement);
            self.sink.checked(&checked)?;
            return Ok(());
        }
        checked.settled = Settled::Waiting;
        let slot = self.sink.checked(&checked)?;
        // A ticket that has expired stays so: nobody has to wait longer to be told.
        let at = at.time.after((*after).min(self.longest_hold));
        self.due.push(Reverse(Due { at, slot, line: number, ticket, outcome: outcome.clone() }));
        Ok(())
    }

    fn credit(&self, credit: &CreditEvent<'_>) -> Result<Credited, Trouble> {
        let subject = credit.subject();
        Ok(self.engine.credit(DEFAULT_NAMESPACE, &credit.reference, &credit.event, &subject)?)
    }

    fn block(&self, block: &BlockEvent<'_>) -> Result<bool, Trouble> {
        let blocked = self.engine.block(&block.order())?;
        Ok(blocked.iter().any(|key| key.changed))
    }

    fn unblock(&self, target: &Target<'_>) -> Result<bool, Trouble> {
        Ok(self.engine.unblock(DEFAULT_NAMESPACE, &target.policy, &target.subject())?)
    }
}

impl Late {
    fn count(&mut self, behind: Span) {
        self.lines += u64::from(behind > Span::ZERO);
        self.most = self.most.max(behind);
    }
}

impl From<LineError> for Trouble {
    fn from(error: LineError) -> Self {
        match error {
            LineError::Invalid(why) => Self::Bad(why),
            LineError::Refused(why) => Self::Refused(why),
        }
    }
}

impl From<String> for Trouble {
    fn from(error: String) -> Self {
        Self::Bad(error)
    }
}

impl From<catraca::Error> for Trouble {
    fn from(error: catraca::Error) -> Self {
        Self::Bad(error.to_string())
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.slot).cmp(&(other.at, other.slot))
    }
}
