//! The run: virtual time, the outcomes that are due, and every line in its turn.
//!
//! A settle due at an instant runs before the lines of that instant; of several, the one due first
//! comes first, then the one of the earlier line. A bad line changes nothing, not even the time.
//! Must not know how results are shown.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use anyhow::bail;
use catraca::settlement::{Credited, Settlement};
use catraca::{BlockOrder, Decision, Engine, ManualClock, Outcome, Settle, Span, Time};
use catraca_core::request::DEFAULT_NAMESPACE;

use super::event::{At, BlockEvent, CheckEvent, CreditEvent, Event, Kind, Target, Written};
use super::lines::{LINE_BYTES_MAX, Line};
use super::log::Reader;

/// The most lines that may wait for an outcome, or behind one that does.
const WAITING_MAX: usize = 1_000_000;
/// How far behind the one before it a line of an access log may be: servers write a line when its
/// request ends, and some write when it began.
const LATE_MAX: Span = Span::from_secs(3_600);

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
        Ok(Ended { fine: self.bad == 0, late: self.late })
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
        if self.due.peek().is_some_and(|due| due.0.at <= time) {
            self.refuse_early(&event)?;
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

    /// A check that is refused must not make settles run: it would have moved the time.
    fn refuse_early(&self, event: &Event<'_>) -> Result<(), Trouble> {
        if let Kind::Check(check) = &event.kind {
            self.engine.peek(&check.check())?;
        }
        Ok(())
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
        let blocked = self.engine.block(&BlockOrder {
            namespace: DEFAULT_NAMESPACE,
            policy: &block.target.policy,
            subject: block.target.subject(),
            span: block.span,
            reason: block.reason.as_deref(),
        })?;
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
