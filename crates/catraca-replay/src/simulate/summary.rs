//! The summary of a run: allowed and denied requests by policy, subject and time.
//!
//! Memory is bounded: subjects are tracked up to a limit, and a note says when it was reached.
//! Private values are counted by their pseudonyms.

mod event_counts;
mod notes;
mod policy;
mod subjects;
mod summary_data;
mod timeline;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use catraca::settlement::Settlement;
use catraca::{Catalog, Check, Decision, Secret, Time};
use catraca_core::digest::Digester;
use catraca_core::facts::NamespaceFacts;
use catraca_core::plan::display_parts;
use catraca_core::policy::Name;
use catraca_core::select::{KeyParts, Selector};

pub use event_counts::EventCounts;
use policy::{DenialsPerMinute, PolicyTally};
pub use subjects::{SubjectId, Subjects};
pub use summary_data::{HistoryInstant, PolicySummary, SummaryData};
pub use timeline::{Axis, Timeline, TimelineSlot};

use super::line_result::{
    ActResult, BadLine, CheckResult, LineResult, ResultInstant, SettleResult,
};
use crate::text::sanitize;

/// Maximum number of undeclared gates tracked by name.
const UNLISTED_MAX: usize = 1_000;

/// Collects the summary while a run proceeds.
pub struct Summary {
    catalog: Arc<Catalog>,
    digester: Digester,
    events: EventCounts,
    policies: Vec<PolicyTally>,
    /// The index of each policy's tally.
    indexes: HashMap<Name, usize>,
    subjects: Subjects,
    totals: Totals,
    unlisted: BTreeMap<String, u64>,
    /// The verdicts of all lines since the last [`Self::take_verdicts`]; only for comparisons.
    verdicts: Option<Vec<Verdict>>,
    bad_lines: Option<BadLineListener>,
}

/// Called with the number of a bad line, and why it is bad.
pub type BadLineListener = Box<dyn FnMut(u64, &str) + Send>;

/// The verdict on a line, for comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Allowed.
    Passed,
    /// Denied; with the subject, if a policy denied it and the subject is tracked.
    Denied(Option<SubjectId>),
    /// Not a check, or a bad line.
    None,
}

/// Totals over all policies.
#[derive(Default)]
struct Totals {
    lines: u64,
    bad: u64,
    span: Option<(HistoryInstant, HistoryInstant)>,
    allowed: ReasonCounts,
    denied: ReasonCounts,
    settled: ReasonCounts,
    acts: ReasonCounts,
    degraded: u64,
    timeline: Timeline,
    minutes: DenialsPerMinute,
}

/// Counts by reason, state or kind.
pub type ReasonCounts = BTreeMap<&'static str, u64>;

impl Summary {
    /// An empty summary.
    pub fn new(catalog: Arc<Catalog>, secret: Secret, events: EventCounts) -> Self {
        let policies = catalog.policies.iter().map(|_| PolicyTally::default()).collect();
        let names = catalog.policies.iter().map(|policy| policy.name.clone());
        let indexes = names.zip(0..).collect();
        Self {
            catalog,
            digester: Digester::new(&secret),
            events,
            policies,
            indexes,
            subjects: Subjects::default(),
            totals: Totals::default(),
            unlisted: BTreeMap::new(),
            verdicts: None,
            bad_lines: None,
        }
    }

    /// Collects verdicts for [`Self::take_verdicts`].
    #[must_use]
    pub fn with_verdicts(mut self) -> Self {
        self.verdicts = Some(Vec::new());
        self
    }

    /// Calls `listener` with every bad line.
    #[must_use]
    pub fn with_bad_line_listener(mut self, listener: BadLineListener) -> Self {
        self.bad_lines = Some(listener);
        self
    }

    /// The verdicts of the lines since the last call, in their order.
    pub fn take_verdicts(&mut self) -> Vec<Verdict> {
        self.verdicts.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The denied subjects.
    pub fn subjects(&self) -> &Subjects {
        &self.subjects
    }

    /// The catalog.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Counts the results of the next batch.
    pub fn count(&mut self, results: &[LineResult<'_>]) {
        for result in results {
            match result {
                LineResult::Check(check) => self.count_check(check),
                LineResult::Act(at, act) => self.count_act(*at, act),
                LineResult::BadLine(bad) => {
                    self.count_bad_line(bad);
                    self.push_verdict(Verdict::None);
                }
                LineResult::Settled(_, settlement) => self.totals.count_settled(settlement),
                LineResult::SettleFailed(_, bad) => self.count_bad_line(bad),
                LineResult::BlockStarted { policy, at } => self.count_block(policy, *at),
            }
        }
    }

    fn count_check(&mut self, line: &CheckResult<'_>) {
        self.totals.count(&line.decision, line.at.time);
        match &line.settled {
            SettleResult::NotGiven | SettleResult::Waiting => {}
            SettleResult::Ignored => *self.totals.settled.entry("ignored").or_default() += 1,
            SettleResult::Done(settlement) => self.totals.count_settled(settlement),
        }
        if line.decision.unlisted {
            self.count_unlisted_gate(line.check.gate);
        }
        let verdict = self.count_rows(line);
        self.count_line(line.at, verdict);
    }

    fn count_act(&mut self, at: ResultInstant<'_>, act: &ActResult) {
        let kind = match act {
            ActResult::Credit(Ok(_)) => "credits applied",
            ActResult::Credit(Err(_)) => "credits refused",
            ActResult::Block(_) => "blocks by an operator",
            ActResult::Unblock(_) => "releases",
            ActResult::Reset => "resets",
        };
        *self.totals.acts.entry(kind).or_default() += 1;
        self.count_line(at, Verdict::None);
    }

    fn count_bad_line(&mut self, bad: &BadLine) {
        self.totals.bad += 1;
        if let Some(listener) = &mut self.bad_lines {
            listener(bad.number, &bad.error);
        }
    }

    fn count_line(&mut self, at: ResultInstant<'_>, verdict: Verdict) {
        let instant = HistoryInstant::of(at);
        let first = self.totals.span.map_or(instant, |(first, _)| first);
        self.totals.span = Some((first, instant));
        self.totals.lines += 1;
        self.push_verdict(verdict);
    }

    fn push_verdict(&mut self, verdict: Verdict) {
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.push(verdict);
        }
    }

    fn count_block(&mut self, policy: &str, at: Time) {
        self.totals.timeline.at(at).started += 1;
        if let Some(index) = self.indexes.get(policy) {
            self.policies[*index].timeline.at(at).started += 1;
        }
    }

    fn count_rows(&mut self, line: &CheckResult<'_>) -> Verdict {
        let decision = &line.decision;
        for row in &decision.rows {
            if let Some(index) = self.indexes.get(&row.policy) {
                self.policies[*index].count(row, line.at.time);
            }
        }
        let any_denied = decision.rows.iter().any(|row| !row.allowed);
        let who = if any_denied { self.count_subjects(&line.check, decision) } else { None };
        if decision.allowed { Verdict::Passed } else { Verdict::Denied(who) }
    }

    /// Counts the subjects of denied rows. A decision does not contain keys, so they are selected
    /// again in the way of the engine. Returns the subject of the policy that decided.
    fn count_subjects(&mut self, check: &Check<'_>, decision: &Decision) -> Option<SubjectId> {
        let catalog = &*self.catalog;
        let facts = NamespaceFacts::of_all(&self.catalog.facts);
        let gate = catalog.gates.get(check.gate).map(|gate| gate.policies.as_slice());
        let policies = gate.unwrap_or(catalog.default.as_slice());
        let selector = Selector { catalog, facts, modes: &[] };
        let rows = selector.select(policies, &check.subject).ok()?;
        let rows = rows.iter().zip(&decision.rows).filter(|(_, row)| !row.allowed);
        let mut decided = None;
        for (selected, row) in rows {
            let who = subject_text(catalog, &self.digester, &selected.parts);
            let id = self.subjects.count(selected.policy, who);
            if decided.is_none() && decision.policy.as_ref() == Some(&row.policy) {
                decided = id;
            }
        }
        decided
    }

    fn count_unlisted_gate(&mut self, gate: &str) {
        if let Some(count) = self.unlisted.get_mut(gate) {
            *count += 1;
        } else if self.unlisted.len() < UNLISTED_MAX {
            self.unlisted.insert(sanitize(gate), 1);
        }
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

/// The sum of the counts.
pub fn sum(counts: &ReasonCounts) -> u64 {
    counts.values().sum()
}

fn subject_text(catalog: &Catalog, digester: &Digester, parts: &KeyParts<'_, '_>) -> String {
    let named = display_parts(catalog, digester, parts);
    if named.is_empty() {
        return "everybody".to_owned();
    }
    let all = named.iter().map(|(name, value)| format!("{name}={}", sanitize(value)));
    all.collect::<Vec<_>>().join(" ")
}
