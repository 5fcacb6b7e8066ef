//! The summary of a finished run as plain data, for text, comparison and report.
//!
//! Contains no private values, only names that may be shown.

use std::fmt;

use catraca::core::policy::{Policy, PolicyId};
use catraca::{Time, explain};

use super::super::event::TimeNotation;
use super::super::line_result::ResultInstant;
use super::timeline::Timeline;
use super::{PolicyTally, ReasonCounts, Summary, notes};

/// Number of subjects kept per policy.
const TOP: usize = 10;
/// Millisecond instants before 1980 are offsets from zero, not dates.
const FIRST_DATE: Time = Time::from_millis(10 * 365 * 24 * 3_600_000);

/// The summary of a finished run.
#[derive(Debug)]
pub struct SummaryData {
    /// The revision of the catalog.
    pub revision: String,
    /// Number of good lines.
    pub lines: u64,
    /// Number of bad lines.
    pub bad: u64,
    /// The first and the last instant.
    pub span: Option<(HistoryInstant, HistoryInstant)>,
    /// Allowed checks, by reason.
    pub allowed: ReasonCounts,
    /// Denied checks, by reason.
    pub denied: ReasonCounts,
    /// Outcomes, by the state of their settlement.
    pub settled: ReasonCounts,
    /// Credits and operators' acts, by kind.
    pub acts: ReasonCounts,
    /// The decisions over time.
    pub timeline: Timeline,
    /// The minute with the most denials.
    pub worst: Option<(HistoryInstant, u64)>,
    /// The policies, in the order of the catalog.
    pub policies: Vec<PolicySummary>,
    /// Notes on the run.
    pub notes: Vec<String>,
}

/// The summary of one policy.
#[derive(Debug)]
pub struct PolicySummary {
    /// The name.
    pub name: String,
    /// The mode.
    pub mode: &'static str,
    /// Limit, block and tiers, as text.
    pub terms: String,
    /// Rows of decisions that it allowed.
    pub allowed: u64,
    /// Rows that it denied, including `blocked`.
    pub denied: u64,
    /// Denied rows with an active block.
    pub blocked: u64,
    /// Blocks started or lengthened.
    pub blocks: u64,
    /// The minute with the most denials.
    pub worst: Option<(HistoryInstant, u64)>,
    /// Its rows over time.
    pub timeline: Timeline,
    /// The subjects denied most, with their denials.
    pub top: Vec<(String, u64)>,
    /// Number of different denied subjects.
    pub subjects: usize,
}

/// An instant, displayed in the notation of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryInstant {
    /// The instant.
    pub time: Time,
    /// Whether the history has milliseconds instead of dates.
    pub in_millis: bool,
}

impl Summary {
    /// The summary so far, as data.
    pub fn data(&self) -> SummaryData {
        let totals = &self.totals;
        let in_millis = totals.span.is_some_and(|(first, _)| first.in_millis);
        let all = (0_u16..).map(PolicyId).zip(&self.catalog.policies).zip(&self.policies);
        let policies = all.map(|((id, policy), tally)| self.policy(id, policy, tally, in_millis));
        SummaryData {
            revision: self.catalog.revision.to_string(),
            lines: totals.lines,
            bad: totals.bad,
            span: totals.span,
            allowed: totals.allowed.clone(),
            denied: totals.denied.clone(),
            settled: totals.settled.clone(),
            acts: totals.acts.clone(),
            timeline: totals.timeline.clone(),
            worst: totals.minutes.worst().map(|(time, n)| (HistoryInstant { time, in_millis }, n)),
            policies: policies.collect(),
            notes: notes::notes(self),
        }
    }

    fn policy(
        &self,
        id: PolicyId,
        policy: &Policy,
        tally: &PolicyTally,
        in_millis: bool,
    ) -> PolicySummary {
        let (top, subjects) = self.subjects.top(id, TOP);
        let worst = tally.minutes.worst();
        PolicySummary {
            name: policy.name.to_string(),
            mode: policy.mode.as_str(),
            terms: terms_text(policy),
            allowed: tally.allowed,
            denied: tally.denied,
            blocked: tally.blocked,
            blocks: self.events.lock().blocks_of(&policy.name),
            worst: worst.map(|(time, denied)| (HistoryInstant { time, in_millis }, denied)),
            timeline: tally.timeline.clone(),
            top,
            subjects,
        }
    }
}

impl SummaryData {
    /// The policy with a name.
    pub fn policy(&self, name: &str) -> Option<&PolicySummary> {
        self.policies.iter().find(|policy| policy.name == name)
    }

    /// Blocks started, over all policies.
    pub fn blocks(&self) -> u64 {
        self.policies.iter().map(|policy| policy.blocks).sum()
    }
}

impl PolicySummary {
    /// Whether the policy decided any line.
    pub fn was_checked(&self) -> bool {
        self.allowed + self.denied > 0
    }
}

impl HistoryInstant {
    /// The instant of a line.
    pub fn of(at: ResultInstant<'_>) -> Self {
        Self { time: at.time, in_millis: matches!(at.written, TimeNotation::Millis(_)) }
    }
}

/// Offsets are displayed as durations.
impl fmt::Display for HistoryInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.in_millis && self.time < FIRST_DATE {
            return write!(f, "{}", self.time.since(Time::ZERO));
        }
        write!(f, "{}", self.time)
    }
}

/// Limit, block and number of tiers, as text.
fn terms_text(policy: &Policy) -> String {
    let mut text = match &policy.base {
        Some(terms) => terms.describe_limit(),
        None => "limits by tier".to_owned(),
    };
    if let Some(block) = policy.base.as_ref().and_then(|terms| terms.block) {
        text += &format!(", block {}", explain::describe_block(block));
    }
    if policy.base.is_some() && !policy.tiers.is_empty() {
        text += &format!(", {}", crate::text::count_noun(policy.tiers.len(), "tier", "tiers"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_milliseconds_are_offsets_and_large_ones_dates() {
        let text = |millis, in_millis| {
            HistoryInstant { time: Time::from_millis(millis), in_millis }.to_string()
        };
        assert_eq!(text(720_000, true), "12m");
        assert_eq!(text(720_000, false), "1970-01-01T00:12:00Z");
        assert_eq!(text(1_767_225_600_000, true), "2026-01-01T00:00:00Z");
    }
}
