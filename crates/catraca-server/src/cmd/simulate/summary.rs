//! The summary of a run: what every policy let pass and denied, whom, and when it was worst.
//!
//! Memory is bounded: subjects are tracked up to a cap, and the summary says so when it was
//! reached. Private values are counted under their pseudonyms. Must not decide anything.

mod heard;
mod notes;
mod picture;
mod policy;
mod print;
mod subjects;
mod timeline;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use catraca::settlement::Settlement;
use catraca::{Catalog, Decision, Secret, Time};
use catraca_core::digest::Digester;
use catraca_core::plan::named;
use catraca_core::policy::Name;
use catraca_core::select::{Parts, Selector};

pub use heard::Heard;
pub use picture::{Instant, Picture, PolicyPicture};
use policy::{Minutes, PolicyTally};
pub use print::{share, sum};
pub use subjects::{SubjectId, Subjects};
pub use timeline::{Axis, Slot as TimeSlot, Timeline};

use super::event::{At, CheckEvent};
use super::sink::{Act, Checked, Settled, Sink, Slot};
use crate::render::{plain, tell};

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
    /// What became of every line since they were last taken, if anybody takes them.
    verdicts: Option<Vec<Verdict>>,
    /// Whether bad lines are shown on standard error.
    tells_bad: bool,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It was denied; who, if one policy did and the subject is tracked.
    Denied(Option<SubjectId>),
    /// It was no check, or bad.
    None,
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
    timeline: Timeline,
    minutes: Minutes,
}

/// How often each word was said.
pub type Counts = BTreeMap<&'static str, u64>;

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
            verdicts: None,
            tells_bad: true,
        }
    }

    /// Keeps what became of every line, for [`Self::take_verdicts`].
    #[must_use]
    pub fn with_verdicts(mut self) -> Self {
        self.verdicts = Some(Vec::new());
        self
    }

    /// Does not show bad lines: somebody else does.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.tells_bad = false;
        self
    }

    /// What became of the lines since the last time.
    pub fn take_verdicts(&mut self) -> Vec<Verdict> {
        self.verdicts.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Who was denied.
    pub fn subjects(&self) -> &Subjects {
        &self.subjects
    }

    /// The catalog that decided.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn line(&mut self, at: &At<'_>, verdict: Verdict) -> Slot {
        let instant = Instant::of(at);
        let first = self.totals.span.map_or(instant, |(first, _)| first);
        self.totals.span = Some((first, instant));
        self.totals.lines += 1;
        self.verdicts.iter_mut().for_each(|all| all.push(verdict));
        self.place_blocks();
        Slot(self.totals.lines)
    }

    /// Puts the blocks that were started meanwhile on their timelines.
    fn place_blocks(&mut self) {
        let mut said = self.heard.said();
        for (policy, at) in said.started.drain(..) {
            self.totals.timeline.at(at).started += 1;
            if let Some(place) = self.places.get(&*policy) {
                self.policies[*place].timeline.at(at).started += 1;
            }
        }
    }

    fn count_rows(&mut self, line: &Checked<'_, '_>) -> Verdict {
        let decision = line.decision;
        for row in &decision.rows {
            if let Some(place) = self.places.get(&row.policy) {
                self.policies[*place].count(row, line.at.time);
            }
        }
        let any_denied = decision.rows.iter().any(|row| !row.allowed);
        let who = if any_denied { self.count_subjects(line.event, decision) } else { None };
        if decision.allowed { Verdict::Passed } else { Verdict::Denied(who) }
    }

    /// A decision does not name keys, so those of its rows are selected again, as the engine did.
    /// Returns whom the decision is about when it is a denial.
    fn count_subjects(&mut self, event: &CheckEvent<'_>, decision: &Decision) -> Option<SubjectId> {
        let check = event.check();
        let (catalog, facts) = (&*self.catalog, &self.catalog.facts);
        let gate = catalog.gates.get(check.gate).map(|gate| gate.policies.as_slice());
        let policies = gate.unwrap_or(catalog.default.as_slice());
        let selector = Selector { catalog, facts, modes: &[] };
        let rows = selector.select(policies, &check.subject).ok()?;
        let rows = rows.iter().zip(&decision.rows).filter(|(_, row)| !row.allowed);
        let mut decided = None;
        for (selected, row) in rows {
            let who = who(catalog, &self.digester, &selected.parts);
            let id = self.subjects.count(selected.policy, who);
            if decided.is_none() && decision.policy.as_ref() == Some(&row.policy) {
                decided = id;
            }
        }
        decided
    }

    fn note_unlisted(&mut self, gate: &str) {
        if let Some(count) = self.unlisted.get_mut(gate) {
            *count += 1;
        } else if self.unlisted.len() < UNLISTED_MAX {
            self.unlisted.insert(plain(gate), 1);
        }
    }
}

impl Sink for Summary {
    fn checked(&mut self, line: &Checked<'_, '_>) -> io::Result<Slot> {
        self.totals.count(line.decision, line.at.time);
        match line.settled {
            Settled::NotGiven | Settled::Waiting => {}
            Settled::Ignored => *self.totals.settled.entry("ignored").or_default() += 1,
            Settled::Done(settlement) => self.totals.count_settled(settlement),
        }
        if line.decision.unlisted {
            self.note_unlisted(line.event.check().gate);
        }
        let verdict = self.count_rows(line);
        Ok(self.line(line.at, verdict))
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
        self.line(at, Verdict::None);
        Ok(())
    }

    fn refused(&mut self, number: u64, slot: Option<Slot>, error: &str) -> io::Result<()> {
        self.totals.bad += 1;
        if slot.is_none() {
            self.verdicts.iter_mut().for_each(|all| all.push(Verdict::None));
        }
        if self.tells_bad && self.totals.bad <= BAD_SHOWN {
            tell(format_args!("line {number}: {}", plain(error)));
        }
        Ok(())
    }

    fn waiting(&self) -> usize {
        0
    }

    fn finish(&mut self) -> io::Result<()> {
        self.place_blocks();
        let more = self.totals.bad.saturating_sub(BAD_SHOWN);
        if self.tells_bad && more > 0 {
            tell(format_args!("and {} more bad lines", crate::render::count(more)));
        }
        Ok(())
    }
}

impl Totals {
    fn count(&mut self, decision: &Decision, at: Time) {
        let counts = if decision.allowed { &mut self.allowed } else { &mut self.denied };
        *counts.entry(decision.reason.as_str()).or_default() += 1;
        self.degraded += u64::from(decision.degraded);
        self.timeline.at(at).count(decision.allowed, decision.reason);
        if !decision.allowed {
            self.minutes.count(at);
        }
    }

    fn count_settled(&mut self, settlement: &Settlement) {
        *self.settled.entry(settlement.state.as_str()).or_default() += 1;
    }
}

fn who(catalog: &Catalog, digester: &Digester, parts: &Parts<'_, '_>) -> String {
    let named = named(catalog, digester, parts);
    if named.is_empty() {
        return "everybody".to_owned();
    }
    let all = named.iter().map(|(name, value)| format!("{name}={}", plain(value)));
    all.collect::<Vec<_>>().join(" ")
}
