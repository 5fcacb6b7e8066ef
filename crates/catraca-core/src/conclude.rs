//! Concluding: a store's replies become the decision.
//!
//! Must not look at state again: everything is in the plan and the replies.

mod message;

use crate::batch::{CheckReply, RowReply, Verdict};
use crate::catalog::Catalog;
use crate::decision::{Decision, Reason, Row};
use crate::limit::Limit;
use crate::lists::Entry;
use crate::plan::{Plan, has_terms};
use crate::policy::Mode;
use crate::select::Selected;
use crate::time::{Span, Time};

pub use message::render;

/// What a check that the lists did not decide comes to.
pub fn conclude(catalog: &Catalog, plan: &Plan<'_, '_>, reply: &CheckReply) -> Decision {
    let mut replies = reply.rows.iter();
    let mut decision = blank(catalog, reply.now);
    decision.degraded = reply.rows.iter().any(|row| row.shared);
    for selected in &plan.rows {
        let answer = if has_terms(selected) { replies.next() } else { None };
        decision.rows.push(row(catalog, selected, answer, reply.now));
    }
    decision.allowed = reply.passed;
    if reply.passed {
        name_tightest(&mut decision)
    } else {
        name_denier(&mut decision)
    }
    hide_endless(&mut decision);
    tell(catalog, plan, reply, &mut decision);
    decision
}

/// What a check that a list decided comes to.
pub fn listed(catalog: &Catalog, entry: &Entry, allowed: bool, now: Time) -> Decision {
    let mut decision = blank(catalog, now);
    decision.allowed = allowed;
    decision.reason = if allowed { Reason::Allowlisted } else { Reason::Blocklisted };
    decision.retry_after = entry.until.filter(|_| !allowed).map(|until| until.since(now));
    decision.blocked_until = entry.until.filter(|_| !allowed);
    decision
}

fn blank(catalog: &Catalog, at: Time) -> Decision {
    Decision {
        allowed: true,
        reason: Reason::Ok,
        policy: None,
        limit: None,
        remaining: None,
        reset_after: None,
        retry_after: None,
        blocked_until: None,
        mode: Mode::Enforce,
        degraded: false,
        cached: false,
        revision: catalog.revision.clone(),
        message: None,
        status: None,
        ticket: None,
        unlisted: false,
        at,
        rows: Default::default(),
    }
}

fn row(catalog: &Catalog, selected: &Selected<'_, '_>, reply: Option<&RowReply>, now: Time) -> Row {
    let policy = catalog.policy(selected.policy);
    let blocked = reply.is_some_and(|reply| reply.block.is_some());
    let free = reply.filter(|reply| reply.limit.is_some()).map(|reply| reply.free);
    let is_bucket = selected.terms.is_some_and(|terms| matches!(terms.limit, Limit::Bucket(_)));
    Row {
        policy: policy.name.clone(),
        attribute: selected.attribute.cloned(),
        allowed: reply.is_some_and(|reply| reply.verdict == Verdict::Fits),
        reason: reply.map_or(Reason::Missing, |reply| reason(reply.verdict)),
        limit: reply.and_then(|reply| reply.limit),
        remaining: free.map(|free| if blocked { 0 } else { free.max(0) }),
        window: selected
            .terms
            .zip(reply)
            .and_then(|(terms, reply)| window(&terms.limit, reply.limit?)),
        balance: free.filter(|_| is_bucket),
        reset_after: reply.and_then(|reply| wait(reply.full_at, now)),
        retry_after: reply.and_then(|reply| wait(reply.fits_at?, now)),
        blocked_until: reply.and_then(|reply| Some(reply.block.as_ref()?.until)),
        charged: reply.map_or(0, |reply| reply.charged),
        mode: selected.mode,
    }
}

/// The time that the shown limit speaks of.
fn window(limit: &Limit, shown: i64) -> Option<Span> {
    match limit {
        Limit::Bucket(terms) => Some(terms.time_to_fill()),
        Limit::Window(all) => all.iter().find(|w| w.limit == shown).map(|w| w.span),
        Limit::Fixed(terms) => Some(terms.span),
        Limit::Inflight(_) | Limit::Unlimited => None,
    }
}

fn reason(verdict: Verdict) -> Reason {
    match verdict {
        Verdict::Fits => Reason::Ok,
        Verdict::Blocked => Reason::Blocked,
        Verdict::TooCostly => Reason::TooCostly,
        Verdict::OverLimit => Reason::OverLimit,
        Verdict::Unavailable => Reason::Unavailable,
    }
}

fn wait(at: Time, now: Time) -> Option<Span> {
    (!at.is_forever()).then(|| at.since(now))
}

/// A block without end has no date to show. It is the latest of any, so this comes last.
fn hide_endless(decision: &mut Decision) {
    let dated = |until: &mut Option<Time>| *until = until.filter(|at| !at.is_forever());
    dated(&mut decision.blocked_until);
    decision.rows.iter_mut().for_each(|row| dated(&mut row.blocked_until));
}

/// Allowed: the enforcing row with the least remaining speaks for the gate.
fn name_tightest(decision: &mut Decision) {
    let counted = |row: &Row| row.mode == Mode::Enforce && row.limit.is_some();
    let rows = decision.rows.iter().enumerate().filter(|(_, row)| counted(row));
    if let Some((place, _)) = rows.min_by_key(|(_, row)| row.remaining) {
        speak(decision, place);
    }
}

/// Denied: the first enforcing row without room speaks; the wait is the longest of all of them.
fn name_denier(decision: &mut Decision) {
    let denying = |row: &&Row| row.mode == Mode::Enforce && !row.allowed;
    let waits = decision.rows.iter().filter(denying).map(|row| row.retry_after);
    decision.retry_after = waits.reduce(latest).flatten();
    let ends = decision.rows.iter().filter(denying).filter_map(|row| row.blocked_until);
    decision.blocked_until = ends.max();
    if let Some(place) = decision.rows.iter().position(|row| denying(&row)) {
        decision.reason = decision.rows[place].reason;
        speak(decision, place);
    }
}

/// The figures of one row become the decision's own.
fn speak(decision: &mut Decision, place: usize) {
    let row = &decision.rows[place];
    decision.policy = Some(row.policy.clone());
    decision.limit = row.limit;
    decision.remaining = row.remaining;
    decision.reset_after = row.reset_after;
}

/// The longer wait; never is longer than any.
fn latest(one: Option<Span>, other: Option<Span>) -> Option<Span> {
    Some(one?.max(other?))
}

/// A denial's text and status: the block's own, else the policy's.
fn tell(catalog: &Catalog, plan: &Plan<'_, '_>, reply: &CheckReply, decision: &mut Decision) {
    if decision.allowed {
        return;
    }
    let denying = |row: &Row| row.mode == Mode::Enforce && !row.allowed;
    let Some(place) = decision.rows.iter().position(denying) else { return };
    let before = plan.rows.iter().take(place).filter(|row| has_terms(row)).count();
    let answer = reply.rows.get(before).filter(|_| has_terms(&plan.rows[place]));
    let note = answer.and_then(|reply| reply.block.as_ref()).map(|block| &block.note);
    let policy = catalog.policy(plan.rows[place].policy);
    let text = note.and_then(|note| note.message.as_ref()).or(policy.message.as_ref());
    decision.status = note.and_then(|note| note.status);
    decision.message = text.map(|text| render(text, decision.retry_after, catalog.language));
}
