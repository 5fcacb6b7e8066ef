//! Replays the same history under two catalogs and compares the decisions line by line.
//!
//! Verdicts are compared batch by batch, so memory does not grow with the history. Subjects are
//! shown as pseudonyms where they are private.

mod comparison_json;

use std::collections::HashMap;
use std::num::NonZero;

use anyhow::Result;

use super::access_log::{HistoryFormat, LineParser};
use super::line_result::LineResult;
use super::pipeline::Pipeline;
use super::planned_line::plan;
use super::replay_engine::ReplayEngine;
use super::run::{LateLines, ReplayResult, RunOptions};
use super::source::Source;
use super::summary::{BadLineListener, PolicySummary, SubjectId, Summary, SummaryData, Verdict};

/// The effect of a changed catalog.
pub struct Comparison {
    /// Under the first catalog.
    pub before: SummaryData,
    /// Under the second catalog.
    pub after: SummaryData,
    /// Allowed before, denied after.
    pub newly_denied: DecisionChanges,
    /// Denied before, allowed after.
    pub newly_allowed: DecisionChanges,
}

/// Requests whose decision changed in one direction.
#[derive(Default)]
pub struct DecisionChanges {
    /// Number of requests.
    pub requests: u64,
    /// The subjects by number of requests, as the denying policy counts them.
    pub subjects: Vec<ChangedSubject>,
}

/// A subject with changed decisions.
pub struct ChangedSubject {
    /// The policy that denies.
    pub policy: String,
    /// The subject's key, as it may be shown.
    pub who: String,
    /// Number of requests.
    pub times: u64,
}

/// Counts changed decisions while both runs proceed.
#[derive(Default)]
struct ChangeCounter {
    denied: ChangeCount,
    allowed: ChangeCount,
}

#[derive(Default)]
struct ChangeCount {
    requests: u64,
    subjects: HashMap<SubjectId, u64>,
}

/// What the results of both runs are counted in.
struct ComparisonCounter {
    before: Summary,
    after: Summary,
    changes: ChangeCounter,
}

/// Replays the history under both catalogs. `bad_lines` is called with the lines that are bad under
/// the first one.
pub fn compare(
    source: Source,
    format: &HistoryFormat,
    before: &ReplayEngine,
    after: &ReplayEngine,
    bad_lines: BadLineListener,
    threads: NonZero<usize>,
) -> Result<(Comparison, ReplayResult)> {
    let before_parser = LineParser::new(&before.catalog, format);
    let after_parser = LineParser::new(&after.catalog, format);
    let options = RunOptions { is_log: before_parser.is_log(), holds_back: false };
    let pipeline = Pipeline::new(threads);
    let before_run = pipeline.add_stage(before.start_run(options));
    let after_run = pipeline.add_stage(after.start_run(options));
    let counter = pipeline.add_stage(ComparisonCounter {
        before: before.summary().with_verdicts().with_bad_line_listener(bad_lines),
        after: after.summary().with_verdicts(),
        changes: ChangeCounter::default(),
    });
    let end = pipeline.run(source, |number, batch| {
        let before_lines = before_parser.parse(batch);
        let plans = plan(before, &before_lines);
        let before = before_run.take_turn(number, |run| run.execute(plans))?;
        let after_lines = after_parser.parse(batch);
        let plans = plan(after, &after_lines);
        let after = after_run.take_turn(number, |run| run.execute(plans))?;
        counter.take_turn(number, |counter| {
            counter.count(&before, &after);
            Ok(())
        })
    })?;
    end?;
    let mut before_run = before_run.into_inner();
    let mut after_run = after_run.into_inner();
    let mut counter = counter.into_inner();
    counter.count(&before_run.finish(), &after_run.finish());
    Ok((counter.comparison(), merge(before_run.result(), after_run.result())))
}

/// The larger figures of both runs: the notes on standard error are about either.
fn merge(one: ReplayResult, other: ReplayResult) -> ReplayResult {
    let most = one.late.most.max(other.late.most);
    let late = LateLines { lines: one.late.lines.max(other.late.lines), most };
    let shared = one.shared.max(other.shared);
    let unblocked = one.unblocked.max(other.unblocked);
    ReplayResult { fine: one.fine && other.fine, late, shared, unblocked }
}

impl ComparisonCounter {
    fn count(&mut self, before: &[LineResult<'_>], after: &[LineResult<'_>]) {
        self.before.count(before);
        self.after.count(after);
        self.changes.count(&self.before.take_verdicts(), &self.after.take_verdicts());
    }

    fn comparison(&self) -> Comparison {
        Comparison {
            before: self.before.data(),
            after: self.after.data(),
            newly_denied: self.changes.denied.rank(&self.after),
            newly_allowed: self.changes.allowed.rank(&self.before),
        }
    }
}

impl ChangeCounter {
    fn count(&mut self, before: &[Verdict], after: &[Verdict]) {
        for pair in before.iter().zip(after) {
            match pair {
                (Verdict::Passed, Verdict::Denied(who)) => self.denied.count(*who),
                (Verdict::Denied(who), Verdict::Passed) => self.allowed.count(*who),
                _ => {}
            }
        }
    }
}

impl ChangeCount {
    fn count(&mut self, who: Option<SubjectId>) {
        self.requests += 1;
        if let Some(who) = who {
            *self.subjects.entry(who).or_default() += 1;
        }
    }

    fn rank(&self, denied_by: &Summary) -> DecisionChanges {
        let ranked = self.subjects.iter().map(|(id, times)| {
            let subject = denied_by.subjects().get(*id);
            let policy = denied_by.catalog().policy(subject.policy).name.to_string();
            ChangedSubject { policy, who: subject.who.clone(), times: *times }
        });
        let mut subjects: Vec<_> = ranked.collect();
        subjects.sort_by(|one, other| {
            let by_name = || (&one.policy, &one.who).cmp(&(&other.policy, &other.who));
            other.times.cmp(&one.times).then_with(by_name)
        });
        DecisionChanges { requests: self.requests, subjects }
    }
}

impl Comparison {
    /// All policies of both catalogs, each before and after.
    pub fn policies(&self) -> Vec<(Option<&PolicySummary>, Option<&PolicySummary>)> {
        let before = self.before.policies.iter();
        let both = before.map(|policy| (Some(policy), self.after.policy(&policy.name)));
        let new = self.after.policies.iter();
        let new = new.filter(|policy| self.before.policy(&policy.name).is_none());
        both.chain(new.map(|policy| (None, Some(policy)))).collect()
    }
}
