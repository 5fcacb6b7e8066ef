//! Concludes a check: turns the reply of the store into the decision.
//!
//! It reads no state: everything is in the plan and the reply.

mod message;

use crate::batch::{Batch, CheckReply, CheckRow, RowReply, RowVerdict, WindowFigures};
use crate::catalog::Catalog;
use crate::decision::{Decision, DecisionRow, Reason, WindowQuota, compare_shares};
use crate::limit::{Limit, WindowTerms};
use crate::lists::AccessListEntry;
use crate::plan::{Plan, has_terms};
use crate::policy::{Mode, Name};
use crate::select::SelectedPolicy;
use crate::time::{Span, Time};

pub use message::render;

/// The decision of a check that reached the store.
pub fn conclude(catalog: &Catalog, plan: &Plan<'_, '_>, reply: &CheckReply) -> Decision {
    let mut replies = planned_rows(plan).iter().zip(&reply.rows);
    let mut decision = empty_decision(catalog, reply.now);
    // An overflow cell also counts other keys, so the decision was made without the full state.
    decision.degraded = reply.rows.iter().any(|row| row.is_overflow);
    for selected in &plan.rows {
        // A policy that denies a missing attribute has no row in the batch, so the reply has none
        // either.
        let row_reply = if has_terms(selected) { replies.next() } else { None };
        decision.rows.push(decision_row(catalog, selected, row_reply, reply.now));
    }
    decision.allowed = reply.passed;
    if !reply.passed {
        report_wait(&mut decision);
    }
    copy_reported_row(&mut decision);
    // After the rows were compared, where forever counts as the latest end.
    remove_endless_dates(&mut decision);
    set_message(catalog, plan, reply, &mut decision);
    decision
}

/// The decision of a check that a list entry allows or denies. It has no rows.
pub fn conclude_from_list(
    catalog: &Catalog,
    entry: &AccessListEntry,
    allowed: bool,
    now: Time,
) -> Decision {
    let mut decision = empty_decision(catalog, now);
    decision.allowed = allowed;
    decision.reason = if allowed { Reason::Allowlisted } else { Reason::Blocklisted };
    decision.retry_after = entry.until.filter(|_| !allowed).map(|until| until.since(now));
    decision.blocked_until = entry.until.filter(|_| !allowed);
    decision
}

fn empty_decision(catalog: &Catalog, at: Time) -> Decision {
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

/// The rows of the batch, to which the reply answers in the same order.
fn planned_rows<'p>(plan: &'p Plan<'_, '_>) -> &'p [CheckRow] {
    match &plan.batch {
        Batch::Check(check) => &check.rows,
        _ => &[],
    }
}

fn decision_row(
    catalog: &Catalog,
    selected: &SelectedPolicy<'_, '_>,
    planned: Option<(&CheckRow, &RowReply)>,
    now: Time,
) -> DecisionRow {
    let policy = &catalog.policy(selected.policy).name;
    let Some((planned, reply)) = planned else { return missing_row(policy, selected) };
    let block = reply.block.as_deref();
    let free = reply.limit.map(|_| reply.free);
    let is_bucket = selected.terms.is_some_and(|terms| matches!(terms.limit, Limit::Bucket(_)));
    let mut row = DecisionRow {
        policy: policy.clone(),
        attribute: selected.attribute.cloned(),
        allowed: reply.verdict == RowVerdict::Fits,
        reason: reason(reply.verdict),
        limit: reply.limit,
        // Zero while a block is active, even if units are free.
        remaining: free.map(|free| if block.is_some() { 0 } else { free.max(0) }),
        window: selected.terms.filter(|_| free.is_some()).and_then(|t| t.limit.reported_span()),
        balance: free.filter(|_| is_bucket),
        reset_after: wait(reply.full_at, now),
        retry_after: reply.fits_at.and_then(|at| wait(at, now)),
        blocked_until: block.map(|block| block.until),
        level: block.map(|block| block.level).filter(|level| *level > 0),
        charged: reply.charged,
        mode: selected.mode,
        windows: Vec::new(),
    };
    // The limits of the batch, not of the terms: a node without its shared store uses its share.
    if let Limit::Window(windows) = &planned.limit
        && !reply.windows.is_empty()
    {
        add_windows(&mut row, windows, reply, now);
    }
    row
}

/// The row of a policy that denies because its key is incomplete: it has no numbers.
fn missing_row(policy: &Name, selected: &SelectedPolicy<'_, '_>) -> DecisionRow {
    DecisionRow {
        policy: policy.clone(),
        attribute: selected.attribute.cloned(),
        allowed: false,
        reason: Reason::Missing,
        limit: None,
        remaining: None,
        window: None,
        balance: None,
        reset_after: None,
        retry_after: None,
        blocked_until: None,
        level: None,
        charged: 0,
        mode: selected.mode,
        windows: Vec::new(),
    }
}

/// Lists the windows of a row that has several, and sets the numbers of the row to those of one.
fn add_windows(row: &mut DecisionRow, windows: &[WindowTerms], reply: &RowReply, now: Time) {
    let block_end = reply.block.as_ref().map(|block| block.until);
    let quota = |(terms, figures): (&WindowTerms, &WindowFigures)| WindowQuota {
        limit: terms.limit,
        span: terms.span,
        remaining: if block_end.is_some() { 0 } else { figures.free.max(0) },
        reset_after: wait(figures.full_at.max(block_end.unwrap_or(Time::ZERO)), now),
        // `None` is less than every instant: the later of the two that exist.
        retry_after: figures.fits_at.max(block_end).and_then(|at| wait(at, now)),
    };
    row.windows = windows.iter().zip(&reply.windows).map(quota).collect();
    // Only a window that does not fit explains a denial.
    let any_denies = reply.windows.iter().any(|figures| figures.fits_at.is_some());
    let candidates = row.windows.iter().zip(&reply.windows);
    let candidates = candidates.filter(|(_, figures)| !any_denies || figures.fits_at.is_some());
    let share =
        |(quota, figures): &(&WindowQuota, &WindowFigures)| (figures.free.max(0), quota.limit);
    let tightest = candidates.min_by(|one, other| compare_shares(share(one), share(other)));
    if let Some((tightest, _)) = tightest {
        row.limit = Some(tightest.limit);
        row.remaining = Some(tightest.remaining);
        row.window = Some(tightest.span);
        row.reset_after = tightest.reset_after;
    }
}

fn reason(verdict: RowVerdict) -> Reason {
    match verdict {
        RowVerdict::Fits => Reason::Ok,
        RowVerdict::Blocked => Reason::Blocked,
        RowVerdict::TooCostly => Reason::TooCostly,
        RowVerdict::OverLimit => Reason::OverLimit,
        RowVerdict::Unavailable => Reason::Unavailable,
    }
}

/// The time until an instant; `None` if it never comes.
fn wait(at: Time, now: Time) -> Option<Span> {
    (!at.is_forever()).then(|| at.since(now))
}

/// Removes the end of blocks that never end: they are reported without a date.
fn remove_endless_dates(decision: &mut Decision) {
    let remove_forever = |until: &mut Option<Time>| *until = until.filter(|at| !at.is_forever());
    remove_forever(&mut decision.blocked_until);
    decision.rows.iter_mut().for_each(|row| remove_forever(&mut row.blocked_until));
}

/// The wait of a denied check: the longest among all enforcing rows that do not fit, since the same
/// check needs every row to fit.
fn report_wait(decision: &mut Decision) {
    let denying = |row: &&DecisionRow| row.mode == Mode::Enforce && !row.allowed;
    let waits = decision.rows.iter().filter(denying).map(|row| row.retry_after);
    decision.retry_after = waits.reduce(longest).flatten();
    let ends = decision.rows.iter().filter(denying).filter_map(|row| row.blocked_until);
    decision.blocked_until = ends.max();
}

/// Gives the decision the reason, policy and numbers of the row that it reports.
fn copy_reported_row(decision: &mut Decision) {
    let Some(row) = decision.reported_row() else { return };
    let policy = row.policy.clone();
    let DecisionRow { reason, limit, remaining, reset_after, .. } = *row;
    decision.reason = reason;
    decision.policy = Some(policy);
    decision.limit = limit;
    decision.remaining = remaining;
    decision.reset_after = reset_after;
}

/// The longer of two waits; `None` means never, and is longer than any.
fn longest(one: Option<Span>, other: Option<Span>) -> Option<Span> {
    Some(one?.max(other?))
}

/// Sets status and message of a denial: those of the block, or else of the policy.
fn set_message(
    catalog: &Catalog,
    plan: &Plan<'_, '_>,
    reply: &CheckReply,
    decision: &mut Decision,
) {
    if decision.allowed {
        return;
    }
    let denying = |row: &DecisionRow| row.mode == Mode::Enforce && !row.allowed;
    let Some(index) = decision.rows.iter().position(denying) else { return };
    // The reply has no rows for policies without terms, so its index is counted without them.
    let reply_index = plan.rows.iter().take(index).filter(|row| has_terms(row)).count();
    let row_reply = reply.rows.get(reply_index).filter(|_| has_terms(&plan.rows[index]));
    let note = row_reply.and_then(|reply| reply.block.as_ref()).map(|block| &block.note);
    let policy = catalog.policy(plan.rows[index].policy);
    let text = note.and_then(|note| note.message.as_ref()).or(policy.message.as_ref());
    decision.status = note.and_then(|note| note.status);
    decision.message = text.map(|text| render(text, decision.retry_after, catalog.language));
}
