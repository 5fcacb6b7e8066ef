//! What a run came to, as plain data: the screen, the comparison and the page all show this.
//!
//! Must not hold private values in clear: it is made of names that may be shown.

use std::fmt;

use catraca::core::policy::{Policy, PolicyId};
use catraca::{Time, explain};

use super::super::event::{At, Written};
use super::timeline::Timeline;
use super::{Counts, PolicyTally, Summary, notes};

/// Subjects kept per policy.
const TOP: usize = 10;
/// Instants before this are offsets that somebody counted from zero, not dates.
const FIRST_DATE: Time = Time::from_millis(10 * 365 * 24 * 3_600_000);

/// What a run came to.
pub struct Picture {
    /// The catalog's revision.
    pub revision: String,
    /// Good lines.
    pub lines: u64,
    /// Bad ones.
    pub bad: u64,
    /// The first and the last instant.
    pub span: Option<(Instant, Instant)>,
    /// Passed, by reason.
    pub allowed: Counts,
    /// Denied, by reason.
    pub denied: Counts,
    /// Outcomes, by what came of them.
    pub settled: Counts,
    /// Acts, by kind.
    pub acts: Counts,
    /// The decisions over time.
    pub timeline: Timeline,
    /// The minute with most denials.
    pub worst: Option<(Instant, u64)>,
    /// One per policy of the catalog, in its order.
    pub policies: Vec<PolicyPicture>,
    /// What deserves a look.
    pub notes: Vec<String>,
}

/// What one policy did.
pub struct PolicyPicture {
    /// Its name.
    pub name: String,
    /// Whether it decides.
    pub mode: &'static str,
    /// What it says, in words.
    pub terms: String,
    /// Rows with room.
    pub allowed: u64,
    /// Rows without.
    pub denied: u64,
    /// Those of them that were denied because a block stood.
    pub blocked: u64,
    /// Blocks started.
    pub blocks: u64,
    /// The minute with most denials.
    pub worst: Option<(Instant, u64)>,
    /// Its rows over time.
    pub timeline: Timeline,
    /// Who was denied most.
    pub top: Vec<(String, u64)>,
    /// How many different subjects were denied.
    pub subjects: usize,
}

/// An instant as people of this history write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant {
    /// The instant.
    pub time: Time,
    /// Whether the history counts in milliseconds.
    pub in_millis: bool,
}

impl Summary {
    /// What the run came to.
    pub fn picture(&self) -> Picture {
        let totals = &self.totals;
        let in_millis = totals.span.is_some_and(|(first, _)| first.in_millis);
        let all = (0_u16..).map(PolicyId).zip(&self.catalog.policies).zip(&self.policies);
        let policies = all.map(|((id, policy), tally)| self.policy(id, policy, tally, in_millis));
        Picture {
            revision: self.catalog.revision.to_string(),
            lines: totals.lines,
            bad: totals.bad,
            span: totals.span,
            allowed: totals.allowed.clone(),
            denied: totals.denied.clone(),
            settled: totals.settled.clone(),
            acts: totals.acts.clone(),
            timeline: totals.timeline.clone(),
            worst: totals.minutes.worst().map(|(time, n)| (Instant { time, in_millis }, n)),
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
    ) -> PolicyPicture {
        let (top, subjects) = self.subjects.top(id, TOP);
        let worst = tally.minutes.worst();
        PolicyPicture {
            name: policy.name.to_string(),
            mode: policy.mode.as_str(),
            terms: terms(policy),
            allowed: tally.allowed,
            denied: tally.denied,
            blocked: tally.blocked,
            blocks: self.heard.said().blocks_of(&policy.name),
            worst: worst.map(|(time, denied)| (Instant { time, in_millis }, denied)),
            timeline: tally.timeline.clone(),
            top,
            subjects,
        }
    }
}

impl Picture {
    /// The policy of a name.
    pub fn policy(&self, name: &str) -> Option<&PolicyPicture> {
        self.policies.iter().find(|policy| policy.name == name)
    }

    /// Blocks started, by any policy.
    pub fn blocks(&self) -> u64 {
        self.policies.iter().map(|policy| policy.blocks).sum()
    }
}

impl PolicyPicture {
    /// Whether any line met it.
    pub fn was_asked(&self) -> bool {
        self.allowed + self.denied > 0
    }
}

impl Instant {
    /// The instant of a line.
    pub fn of(at: &At<'_>) -> Self {
        Self { time: at.time, in_millis: matches!(at.written, Written::Millis(_)) }
    }
}

/// Offsets are shown as lengths, dates as dates.
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.in_millis && self.time < FIRST_DATE {
            return write!(f, "{}", self.time.since(Time::ZERO));
        }
        write!(f, "{}", self.time)
    }
}

/// Limit and block in words, with a word on tiers.
fn terms(policy: &Policy) -> String {
    let mut words = match &policy.base {
        Some(terms) => explain::limit(&terms.limit),
        None => "limits by tier".to_owned(),
    };
    if let Some(block) = policy.base.as_ref().and_then(|terms| terms.block) {
        words += &format!(", block {}", explain::penalty(block));
    }
    if policy.base.is_some() && !policy.tiers.is_empty() {
        words += &format!(", {}", crate::render::counted(policy.tiers.len(), "tier", "tiers"));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_milliseconds_are_offsets_and_large_ones_dates() {
        let shown =
            |millis, in_millis| Instant { time: Time::from_millis(millis), in_millis }.to_string();
        assert_eq!(shown(720_000, true), "12m");
        assert_eq!(shown(720_000, false), "1970-01-01T00:12:00Z");
        assert_eq!(shown(1_767_225_600_000, true), "2026-01-01T00:00:00Z");
    }
}
