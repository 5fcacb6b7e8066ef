//! A comparison for programs: one object.

use std::io::{self, Write};

use serde::Serialize;

use super::super::report::Labels;
use super::super::summary::{Picture, PolicyPicture, sum};
use super::{Comparison, Moved};

/// Subjects listed of each kind.
const SUBJECTS: usize = 1_000;

#[derive(Serialize)]
struct Shape<'a> {
    events: u64,
    from: Option<String>,
    to: Option<String>,
    before: Side<'a>,
    after: Side<'a>,
    policies: Vec<Policy<'a>>,
    newly_denied: MovedShape<'a>,
    newly_allowed: MovedShape<'a>,
}

#[derive(Serialize)]
struct Side<'a> {
    catalog: &'a str,
    revision: &'a str,
    allowed: u64,
    denied: u64,
    blocks: u64,
    bad_lines: u64,
}

#[derive(Serialize)]
struct Policy<'a> {
    policy: &'a str,
    before: Option<Figures<'a>>,
    after: Option<Figures<'a>>,
}

#[derive(Serialize)]
struct Figures<'a> {
    terms: &'a str,
    mode: &'a str,
    allowed: u64,
    denied: u64,
    while_blocked: u64,
    blocks: u64,
}

#[derive(Serialize)]
struct MovedShape<'a> {
    requests: u64,
    subjects: usize,
    top: Vec<SubjectShape<'a>>,
}

#[derive(Serialize)]
struct SubjectShape<'a> {
    policy: &'a str,
    subject: &'a str,
    times: u64,
}

impl Comparison {
    /// Writes it as one line.
    pub fn write_json(&self, labels: &Labels, mut out: impl Write) -> io::Result<()> {
        let policies = self.policies().into_iter().filter_map(|(before, after)| {
            let policy = &*before.or(after)?.name;
            let (before, after) = (before.map(figures), after.map(figures));
            Some(Policy { policy, before, after })
        });
        let shape = Shape {
            events: self.before.lines,
            from: self.before.span.map(|(first, _)| first.time.to_rfc3339()),
            to: self.before.span.map(|(_, last)| last.time.to_rfc3339()),
            before: side(&labels.catalog, &self.before),
            after: side(&labels.other, &self.after),
            policies: policies.collect(),
            newly_denied: moved(&self.newly_denied),
            newly_allowed: moved(&self.newly_allowed),
        };
        serde_json::to_writer(&mut out, &shape)?;
        out.write_all(b"\n")?;
        out.flush()
    }
}

fn side<'a>(catalog: &'a str, picture: &'a Picture) -> Side<'a> {
    Side {
        catalog,
        revision: &picture.revision,
        allowed: sum(&picture.allowed),
        denied: sum(&picture.denied),
        blocks: picture.blocks(),
        bad_lines: picture.bad,
    }
}

fn figures(policy: &PolicyPicture) -> Figures<'_> {
    Figures {
        terms: &policy.terms,
        mode: policy.mode,
        allowed: policy.allowed,
        denied: policy.denied,
        while_blocked: policy.blocked,
        blocks: policy.blocks,
    }
}

fn moved(moved: &Moved) -> MovedShape<'_> {
    let top = moved.subjects.iter().take(SUBJECTS).map(|subject| SubjectShape {
        policy: &subject.policy,
        subject: &subject.who,
        times: subject.times,
    });
    MovedShape { requests: moved.requests, subjects: moved.subjects.len(), top: top.collect() }
}
