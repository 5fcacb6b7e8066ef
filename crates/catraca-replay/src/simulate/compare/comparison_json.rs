//! The JSON object of a comparison.

use std::io::{self, Write};

use serde::Serialize;

use super::super::summary::{PolicySummary, SummaryData, sum};
use super::{Comparison, DecisionChanges};

/// Maximum number of subjects listed per direction.
const SUBJECTS_MAX_LISTED: usize = 1_000;

#[derive(Serialize)]
struct ComparisonJson<'a> {
    events: u64,
    from: Option<String>,
    to: Option<String>,
    before: SideJson<'a>,
    after: SideJson<'a>,
    policies: Vec<PolicyComparisonJson<'a>>,
    newly_denied: ChangesJson<'a>,
    newly_allowed: ChangesJson<'a>,
}

#[derive(Serialize)]
struct SideJson<'a> {
    catalog: &'a str,
    revision: &'a str,
    allowed: u64,
    denied: u64,
    blocks: u64,
    bad_lines: u64,
}

#[derive(Serialize)]
struct PolicyComparisonJson<'a> {
    policy: &'a str,
    before: Option<PolicyFiguresJson<'a>>,
    after: Option<PolicyFiguresJson<'a>>,
}

#[derive(Serialize)]
struct PolicyFiguresJson<'a> {
    terms: &'a str,
    mode: &'a str,
    allowed: u64,
    denied: u64,
    while_blocked: u64,
    blocks: u64,
}

#[derive(Serialize)]
struct ChangesJson<'a> {
    requests: u64,
    subjects: usize,
    top: Vec<ChangedSubjectJson<'a>>,
}

#[derive(Serialize)]
struct ChangedSubjectJson<'a> {
    policy: &'a str,
    subject: &'a str,
    times: u64,
}

impl Comparison {
    /// Writes the comparison as one line, with the names of both catalogs.
    pub fn write_json(&self, before: &str, after: &str, mut out: impl Write) -> io::Result<()> {
        let policies = self.policies().into_iter().filter_map(|(before, after)| {
            let policy = &*before.or(after)?.name;
            let before = before.map(figures);
            let after = after.map(figures);
            Some(PolicyComparisonJson { policy, before, after })
        });
        let json = ComparisonJson {
            events: self.before.lines,
            from: self.before.span.map(|(first, _)| first.time.to_rfc3339()),
            to: self.before.span.map(|(_, last)| last.time.to_rfc3339()),
            before: side(before, &self.before),
            after: side(after, &self.after),
            policies: policies.collect(),
            newly_denied: changes_json(&self.newly_denied),
            newly_allowed: changes_json(&self.newly_allowed),
        };
        serde_json::to_writer(&mut out, &json)?;
        out.write_all(b"\n")?;
        out.flush()
    }
}

fn side<'a>(catalog: &'a str, data: &'a SummaryData) -> SideJson<'a> {
    SideJson {
        catalog,
        revision: &data.revision,
        allowed: sum(&data.allowed),
        denied: sum(&data.denied),
        blocks: data.blocks(),
        bad_lines: data.bad,
    }
}

fn figures(policy: &PolicySummary) -> PolicyFiguresJson<'_> {
    PolicyFiguresJson {
        terms: &policy.terms,
        mode: policy.mode,
        allowed: policy.allowed,
        denied: policy.denied,
        while_blocked: policy.blocked,
        blocks: policy.blocks,
    }
}

fn changes_json(changes: &DecisionChanges) -> ChangesJson<'_> {
    let top = changes.subjects.iter().take(SUBJECTS_MAX_LISTED).map(|subject| ChangedSubjectJson {
        policy: &subject.policy,
        subject: &subject.who,
        times: subject.times,
    });
    ChangesJson { requests: changes.requests, subjects: changes.subjects.len(), top: top.collect() }
}
