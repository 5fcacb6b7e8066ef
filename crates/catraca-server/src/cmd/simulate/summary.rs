//! The summary of a run: what every policy let pass and denied, whom, and when it was worst.
//!
//! Memory is bounded: subjects are tracked up to a cap, and the summary says so when it was
//! reached. Private values are counted under their pseudonyms. Must not decide anything.

mod heard;
mod policy;
mod print;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::Arc;

use catraca::settlement::Settlement;
use catraca::{Catalog, Decision, Reason, Row, Secret};
use catraca_core::digest::Digester;
use catraca_core::plan::named;
use catraca_core::policy::Name;
use catraca_core::select::{Parts, Selector};

pub use heard::Heard;
use policy::{PolicyTally, Subjects};

use super::event::{At, CheckEvent};
use super::run::{Act, Checked, Settled, Sink, Slot};

/// Bad lines shown one by one; the rest are counted.
const BAD_SHOWN: u64 = 20;
/// Undeclared gates kept by name.
const UNLISTED_MAX: usize = 1_000;

/// Counts what happens.
pub struct Summary {
    catalog: Arc<Catalog>,
    digester: Digester,
    heard: Heard,
    policies: Vec<PolicyTally>,
    /// Where each policy's tally is.
    places: HashMap<Name, usize>,
    subjects: Subjects,
    totals: Totals,
    unlisted: BTreeMap<String, u64>,
}

/// What is counted over all policies.
#[derive(Default)]
struct Totals {
    lines: u64,
    bad: u64,
    span: Option<(Instant, Instant)>,
    allowed: Counts,
    denied: Counts,
    settled: Counts,
    acts: Counts,
    degraded: u64,
}

/// How often each word was said.
type Counts = BTreeMap<&'static str, u64>;

/// An instant as people of this history write it.
#[derive(Clone, Copy)]
struct Instant {
    time: catraca::Time,
    in_millis: bool,
}

impl Summary {
    /// A summary of nothing yet.
    pub fn new(catalog: Arc<Catalog>, secret: Secret, heard: Heard) -> Self {
        let policies = catalog.policies.iter().map(|_| PolicyTally::default()).collect();
        let names = catalog.policies.iter().map(|policy| policy.name.clone());
        let places = names.zip(0..).collect();
        Self {
            catalog,
            digester: Digester::new(&secret),
            heard,
            policies,
            places,
            subjects: Subjects::default(),
            totals: Totals::default(),
            unlisted: BTreeMap::new(),
        }
    }

    /// Prints it.
    pub fn print(&self, out: impl Write) -> io::Result<()> {
        print::Printer::new(self, out).print()
    }

    fn line(&mut self, at: &At<'_>) -> Slot {
        let instant = Instant::of(at);
        let first = self.totals.span.map_or(instant, |(first, _)| first);
        self.totals.span = Some((first, instant));
        self.totals.lines += 1;
        Slot(self.totals.lines)
    }

    fn count_rows(&mut self, line: &Checked<'_, '_>) {
        let minute = line.at.time.micros() / 60_000_000;
        for row in &line.decision.rows {
            if let Some(place) = self.places.get(&row.policy) {
                self.policies[*place].count(row, minute);
            }
        }
        if line.decision.rows.iter().any(|row| !row.allowed) {
            self.count_subjects(line.event, line.decision);
        }
    }

    /// A decision does not name keys, so those of its rows are selected again, as the engine did.
    fn count_subjects(&mut self, event: &CheckEvent<'_>, decision: &Decision) {
        let check = event.check();
        let (catalog, facts) = (&*self.catalog, &self.catalog.facts);
        let gate = catalog.gates.get(check.gate).map(|gate| gate.policies.as_slice());
        let policies = gate.unwrap_or(catalog.default.as_slice());
        let selector = Selector { catalog, facts, modes: &[] };
        let Ok(rows) = selector.select(policies, &check.subject) else { return };
        let rows = rows.iter().zip(&decision.rows).filter(|(_, row)| !row.allowed);
        for (selected, _) in rows {
            let who = who(catalog, &self.digester, &selected.parts);
            self.subjects.count(selected.policy, &who);
        }
    }
}

impl Sink for Summary {
    fn checked(&mut self, line: &Checked<'_, '_>) -> io::Result<Slot> {
        let decision = line.decision;
        let counts =
            if decision.allowed { &mut self.totals.allowed } else { &mut self.totals.denied };
        *counts.entry(decision.reason.as_str()).or_default() += 1;
        self.totals.degraded += u64::from(decision.degraded);
        match line.settled {
            Settled::NotGiven | Settled::Waiting => {}
            Settled::Ignored => *self.totals.settled.entry("ignored").or_default() += 1,
            Settled::Done(settlement) => self.totals.count_settled(settlement),
        }
        if decision.unlisted {
            self.note_unlisted(line.event.check().gate);
        }
        self.count_rows(line);
        Ok(self.line(line.at))
    }

    fn settled(&mut self, _: Slot, settlement: &Settlement) -> io::Result<()> {
        self.totals.count_settled(settlement);
        Ok(())
    }

    fn acted(&mut self, at: &At<'_>, act: &Act) -> io::Result<()> {
        let word = match act {
            Act::Credit(Ok(_)) => "credits applied",
            Act::Credit(Err(_)) => "credits refused",
            Act::Block(_) => "blocks by an operator",
            Act::Unblock(_) => "releases",
            Act::Reset => "resets",
        };
        *self.totals.acts.entry(word).or_default() += 1;
        self.line(at);
        Ok(())
    }

    fn refused(&mut self, number: u64, _: Option<Slot>, error: &str) -> io::Result<()> {
        self.totals.bad += 1;
        if self.totals.bad <= BAD_SHOWN {
            eprintln!("line {number}: {error}");
        }
        Ok(())
    }

    fn waiting(&self) -> usize {
        0
    }

    fn finish(&mut self) -> io::Result<()> {
        let more = self.totals.bad.saturating_sub(BAD_SHOWN);
        if more > 0 {
            eprintln!("and {} more bad lines", crate::render::count(more));
        }
        Ok(())
    }
}

impl Summary {
    fn note_unlisted(&mut self, gate: &str) {
        if let Some(count) = self.unlisted.get_mut(gate) {
            *count += 1;
        } else if self.unlisted.len() < UNLISTED_MAX {
            self.unlisted.insert(gate.to_owned(), 1);
        }
    }
}

impl Totals {
    fn count_settled(&mut self, settlement: &Settlement) {
        *self.settled.entry(settlement.state.as_str()).or_default() += 1;
    }
}

impl PolicyTally {
    fn count(&mut self, row: &Row, minute: i64) {
        if row.allowed {
            self.allowed += 1;
            return;
        }
        self.denied += 1;
        self.blocked += u64::from(row.reason == Reason::Blocked);
        self.minutes.count(minute);
    }
}

fn who(catalog: &Catalog, digester: &Digester, parts: &Parts<'_, '_>) -> String {
    let named = named(catalog, digester, parts);
    let all = named.iter().map(|(name, value)| format!("{name}={value}"));
    all.collect::<Vec<_>>().join(" ")
}
