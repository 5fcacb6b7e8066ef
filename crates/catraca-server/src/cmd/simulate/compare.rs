//! `--compare`: what another catalog makes of the same history, request by request.
//!
//! Both decide on threads of their own and are compared batch by batch, so that memory does not
//! grow with the history. Must not show a private value in clear.

mod json;
mod print;

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use anyhow::Result;

use super::log::Reader;
use super::run::{Ended, Late};
use super::source::{AHEAD, Source};
use super::stage::{Stage, joined};
use super::summary::{Picture, PolicyPicture, SubjectId, Summary, Verdict};
use crate::args::Simulate;
pub use print::change;

/// What a change does.
pub struct Comparison {
    /// With the catalog as it is.
    pub before: Picture,
    /// With the other.
    pub after: Picture,
    /// Passed before, denied after.
    pub newly_denied: Moved,
    /// Denied before, passed after.
    pub newly_allowed: Moved,
}

/// Requests that are decided otherwise.
#[derive(Default)]
pub struct Moved {
    /// How many.
    pub requests: u64,
    /// Whose, most first: as the policy that denies them counts them.
    pub subjects: Vec<MovedSubject>,
}

/// One subject of such requests.
pub struct MovedSubject {
    /// The policy that denies.
    pub policy: String,
    /// Who.
    pub who: String,
    /// How many requests.
    pub times: u64,
}

/// Counts requests that are decided otherwise, while both runs go on.
#[derive(Default)]
struct Moves {
    denied: Count,
    allowed: Count,
}

#[derive(Default)]
struct Count {
    requests: u64,
    subjects: HashMap<SubjectId, u64>,
}

/// Replays a history under both.
pub fn replay(args: &Simulate, before: &Stage, after: &Stage) -> Result<(Comparison, Ended)> {
    let readers = (Reader::new(&before.catalog, args)?, Reader::new(&after.catalog, args)?);
    let source = Source::open(&args.events)?;
    let mut summaries = (before.summary().with_verdicts(), after.summary().with_verdicts().quiet());
    let (mut moves, ended) = thread::scope(|scope| {
        let ((to_one, one), (to_other, other)) = (sync_channel(AHEAD), sync_channel(AHEAD));
        let (tell_one, told_one) = sync_channel(AHEAD);
        let (tell_other, told_other) = sync_channel(AHEAD);
        let pump = scope.spawn(move || source.pump(&[to_one, to_other]));
        // Whoever is not heard any more goes on to its own end.
        let one = scope.spawn(|| {
            let tell = |summary: &mut Summary| drop(tell_one.send(summary.take_verdicts()));
            let ended = before.replay(&readers.0, one, &mut summaries.0, tell);
            drop(tell_one);
            ended
        });
        let other = scope.spawn(|| {
            let tell = |summary: &mut Summary| drop(tell_other.send(summary.take_verdicts()));
            let ended = after.replay(&readers.1, other, &mut summaries.1, tell);
            drop(tell_other);
            ended
        });
        let moves = Moves::between(told_one, told_other);
        let (one, other) = (joined(one), joined(other));
        joined(pump)?;
        anyhow::Ok((moves, both(one?, other?)))
    })?;
    Ok((moves.comparison(&summaries.0, &summaries.1), ended))
}

fn both(one: Ended, other: Ended) -> Ended {
    let most = one.late.most.max(other.late.most);
    let late = Late { lines: one.late.lines.max(other.late.lines), most };
    let shared = one.shared.max(other.shared);
    let unblocked = one.unblocked.max(other.unblocked);
    Ended { fine: one.fine && other.fine, late, shared, unblocked }
}

impl Moves {
    fn between(one: Receiver<Vec<Verdict>>, other: Receiver<Vec<Verdict>>) -> Self {
        let mut moves = Self::default();
        for (one, other) in one.into_iter().zip(other) {
            for pair in one.into_iter().zip(other) {
                match pair {
                    (Verdict::Passed, Verdict::Denied(who)) => moves.denied.count(who),
                    (Verdict::Denied(who), Verdict::Passed) => moves.allowed.count(who),
                    _ => {}
                }
            }
        }
        moves
    }

    fn comparison(&mut self, before: &Summary, after: &Summary) -> Comparison {
        Comparison {
            before: before.picture(),
            after: after.picture(),
            newly_denied: self.denied.named(after),
            newly_allowed: self.allowed.named(before),
        }
    }
}

impl Count {
    fn count(&mut self, who: Option<SubjectId>) {
        self.requests += 1;
        if let Some(who) = who {
            *self.subjects.entry(who).or_default() += 1;
        }
    }

    fn named(&self, denied_by: &Summary) -> Moved {
        let named = self.subjects.iter().map(|(id, times)| {
            let subject = denied_by.subjects().get(*id);
            let policy = denied_by.catalog().policy(subject.policy).name.to_string();
            MovedSubject { policy, who: subject.who.clone(), times: *times }
        });
        let mut subjects: Vec<_> = named.collect();
        subjects.sort_by(|one, other| {
            let by_name = || (&one.policy, &one.who).cmp(&(&other.policy, &other.who));
            other.times.cmp(&one.times).then_with(by_name)
        });
        Moved { requests: self.requests, subjects }
    }
}

impl Comparison {
    /// Every policy of either catalog, as it was and as it will be.
    pub fn policies(&self) -> Vec<(Option<&PolicyPicture>, Option<&PolicyPicture>)> {
        let before = self.before.policies.iter();
        let both = before.map(|policy| (Some(policy), self.after.policy(&policy.name)));
        let new = self.after.policies.iter();
        let new = new.filter(|policy| self.before.policy(&policy.name).is_none());
        both.chain(new.map(|policy| (None, Some(policy)))).collect()
    }
}
