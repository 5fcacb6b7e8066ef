//! Replays the same history under two catalogs and compares the decisions line by
//! line.
//!
//! Each catalog decides on its own thread, and verdicts are compared batch by batch, so memory does
//! not grow with the history. Subjects are shown as pseudonyms where they are private.

mod comparison_json;

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use anyhow::Result;

use super::access_log::{HistoryFormat, Reader};
use super::replay_engine::{ReplayEngine, join};
use super::run::{LateLines, ReplayResult};
use super::source::{AHEAD, Source};
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

/// Replays the history under both catalogs. `bad_lines` is called with the lines that are bad under
/// the first one.
pub fn compare(
    source: Source,
    format: &HistoryFormat,
    before: &ReplayEngine,
    after: &ReplayEngine,
    bad_lines: BadLineListener,
) -> Result<(Comparison, ReplayResult)> {
    let before_reader = Reader::new(&before.catalog, format);
    let after_reader = Reader::new(&after.catalog, format);
    let mut before_summary = before.summary().with_verdicts().with_bad_line_listener(bad_lines);
    let mut after_summary = after.summary().with_verdicts();
    let (mut changes, result) = thread::scope(|scope| {
        let (before_sender, before_batches) = sync_channel(AHEAD);
        let (after_sender, after_batches) = sync_channel(AHEAD);
        let (send_before, before_verdicts) = sync_channel(AHEAD);
        let (send_after, after_verdicts) = sync_channel(AHEAD);
        let pump = scope.spawn(move || source.pump(&[before_sender, after_sender]));
        // A send fails when the other run has ended with an error; this run then finishes alone.
        let before_run = scope.spawn(|| {
            let send = |summary: &mut Summary| drop(send_before.send(summary.take_verdicts()));
            let result = before.replay(&before_reader, before_batches, &mut before_summary, send);
            // Ends the receiver in `ChangeCounter::compare`.
            drop(send_before);
            result
        });
        let after_run = scope.spawn(|| {
            let send = |summary: &mut Summary| drop(send_after.send(summary.take_verdicts()));
            let result = after.replay(&after_reader, after_batches, &mut after_summary, send);
            drop(send_after);
            result
        });
        let changes = ChangeCounter::compare(before_verdicts, after_verdicts);
        // Both threads are joined before an error is returned.
        let before_result = join(before_run);
        let after_result = join(after_run);
        join(pump)?;
        anyhow::Ok((changes, merge(before_result?, after_result?)))
    })?;
    Ok((changes.comparison(&before_summary, &after_summary), result))
}

/// The larger figures of both runs: the notes on standard error are about either.
fn merge(one: ReplayResult, other: ReplayResult) -> ReplayResult {
    let most = one.late.most.max(other.late.most);
    let late = LateLines { lines: one.late.lines.max(other.late.lines), most };
    let shared = one.shared.max(other.shared);
    let unblocked = one.unblocked.max(other.unblocked);
    ReplayResult { fine: one.fine && other.fine, late, shared, unblocked }
}

impl ChangeCounter {
    fn compare(one: Receiver<Vec<Verdict>>, other: Receiver<Vec<Verdict>>) -> Self {
        let mut changes = Self::default();
        for (one, other) in one.into_iter().zip(other) {
            for pair in one.into_iter().zip(other) {
                match pair {
                    (Verdict::Passed, Verdict::Denied(who)) => changes.denied.count(who),
                    (Verdict::Denied(who), Verdict::Passed) => changes.allowed.count(who),
                    _ => {}
                }
            }
        }
        changes
    }

    fn comparison(&mut self, before: &Summary, after: &Summary) -> Comparison {
        Comparison {
            before: before.data(),
            after: after.data(),
            newly_denied: self.denied.rank(after),
            newly_allowed: self.allowed.rank(before),
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
