//! References, the credits that find their check by them, and an upstream's view of a bucket.

use std::slice::from_ref;

use catraca_core::batch::{
    Check, CheckReply, CheckRow, CreditReply, CreditRow, ReconcileRow, Reconciled, Remember,
    Settle, Told, Verdict,
};
use catraca_core::cell::block::Origin;
use catraca_core::digest::Key;
use catraca_core::time::Span;

use super::desk::*;

/// The check whose ticket this is.
fn owner(ticket: u8) -> Key {
    key(150 + ticket)
}

/// Checks some rows and remembers them for ten seconds.
fn remembering(desk: &Desk, rows: &[CheckRow], ticket: u8, at: i64) -> Result<CheckReply, String> {
    let span = Span::from_secs(10);
    let remember =
        Remember { key: key(200), owner: owner(ticket), ticket: Box::new([ticket; 3]), span };
    let rows = rows.iter().cloned().collect();
    desk.ask(Check { rows, remember: Some(Box::new(remember)), ..Check::default() }, at)
}

pub(super) fn the_first_admitted_check_owns_a_reference(desk: &Desk) -> Proof {
    let two = row(1, window(2, S));
    let denied = remembering(desk, &[asking(3, &two)], 1, 0)?;
    same("a denied check owns nothing", denied.remembered, false)?;
    same("nothing is known", desk.recall(key(200), 0)?, None)?;
    same("the first", remembering(desk, from_ref(&two), 2, 1)?.remembered, true)?;
    let second = remembering(desk, &[two], 3, 2)?;
    same("the second passes", (second.passed, second.remembered), (true, false))?;
    let known = desk.recall(key(200), 3)?.ok_or("a remembered check is unknown")?;
    same("the first one's ticket", &*known.ticket, &[2; 3][..])?;
    same("and instant", known.instants, vec![Some(instant(1))])
}

pub(super) fn a_reference_knows_its_charged_rows_and_its_outcome(desk: &Desk) -> Proof {
    let shadow = CheckRow { shadow: true, ..row(1, window(1, 60 * S)) };
    desk.one(&shadow, 0)?;
    let real = row(2, bucket(5, 1, S));
    remembering(desk, &[shadow, real.clone()], 1, S)?;
    let known = desk.recall(key(200), S)?.ok_or("a remembered check is unknown")?;
    same("instants", known.instants, vec![None, Some(instant(S))])?;
    same("not settled", (known.settled, known.credited.len()), (None, 0))?;
    for (mark, status, kept) in [(100, Some(404), 404), (101, None, 0)] {
        let (mark, expires) = (key(mark), instant(60 * S));
        let rows = vec![paid(&real, S, 1)];
        let told = Told { key: key(200), owner: owner(1), status };
        desk.settle(Settle { mark, expires, rows, reference: Some(Box::new(told)) }, S)?;
        let known = desk.recall(key(200), S)?.ok_or("a settled check is unknown")?;
        same("settled with", known.settled, Some(kept))?;
    }
    Ok(())
}

pub(super) fn a_reference_hears_only_of_its_own_check(desk: &Desk) -> Proof {
    let shadow = CheckRow { shadow: true, ..row(1, window(1, 600 * S)) };
    desk.one(&shadow, 0)?;
    for ticket in [1, 2] {
        let at = i64::from(ticket) * 20 * S;
        same("taken", remembering(desk, from_ref(&shadow), ticket, at)?.remembered, true)?;
    }
    // Neither check was charged, so nothing but its owner tells one from the other.
    for (ticket, settled) in [(1, None), (2, Some(200))] {
        let told = Told { key: key(200), owner: owner(ticket), status: Some(200) };
        let (mark, expires) = (owner(ticket), instant(600 * S));
        let reference = Some(Box::new(told));
        desk.settle(Settle { mark, expires, rows: Vec::new(), reference }, 41 * S)?;
        let known = desk.recall(key(200), 41 * S)?.ok_or("a remembered check is unknown")?;
        same("settled with", known.settled, settled)?;
    }
    Ok(())
}

pub(super) fn a_reference_is_forgotten_on_time(desk: &Desk) -> Proof {
    let many = row(1, window(9, S));
    remembering(desk, from_ref(&many), 1, 0)?;
    same("known", desk.recall(key(200), 10 * S - 1)?.is_some(), true)?;
    same("forgotten", desk.recall(key(200), 10 * S)?, None)?;
    let given = CreditRow { key: key(2), terms: terms(5, 1, S), amount: 1 };
    let credit = desk.credit(key(200), "payment", given, 10 * S)?;
    same("no credit", credit, CreditReply::Unknown)?;
    same("free for another", remembering(desk, &[many], 2, 10 * S)?.remembered, true)
}

pub(super) fn a_credit_counts_once_per_event(desk: &Desk) -> Proof {
    let ten = row(1, bucket(10, 1, 3_600 * S));
    remembering(desk, &[asking(8, &ten)], 1, 0)?;
    let give = |amount| CreditRow { key: ten.key, terms: terms(10, 1, 3_600 * S), amount };
    let credit = |event, amount| desk.credit(key(200), event, give(amount), S);
    same("two", credit("a", 2)?, CreditReply::Applied(vec![2]))?;
    same("once", credit("a", 2)?, CreditReply::Duplicate)?;
    same("another event", credit("b", 3)?, CreditReply::Applied(vec![3]))?;
    same("free", desk.free(&ten, S)?, 7)?;
    let known = desk.recall(key(200), S)?.ok_or("a remembered check is unknown")?;
    let events: Vec<&str> = known.credited.iter().map(|event| &**event).collect();
    same("events", events, vec!["a", "b"])
}

pub(super) fn a_credit_is_capped_and_lifts_no_block(desk: &Desk) -> Proof {
    let ten = row(1, bucket(10, 1, 3_600 * S));
    remembering(desk, &[asking(10, &ten)], 1, 0)?;
    desk.block(ten.key, ordered(Origin::Operator, Span::from_secs(100)), 0)?;
    let give = |number| CreditRow { key: key(number), terms: terms(10, 1, 3_600 * S), amount: 120 };
    let all = desk.credit(key(200), "a", give(1), S)?;
    same("to its size", all, CreditReply::Applied(vec![10]))?;
    let full = desk.credit(key(200), "b", give(2), S)?;
    same("a full one takes none", full, CreditReply::Applied(vec![0]))?;
    let blocked = desk.one(&ten, S)?;
    same("blocked still", (blocked.verdict, blocked.free), (Verdict::Blocked, 10))
}

fn view(available: i64, observed_at: i64) -> ReconcileRow {
    let observed_at = instant(observed_at);
    ReconcileRow { key: key(1), terms: terms(100, 1, S), available, observed_at }
}

pub(super) fn an_upstreams_lower_view_wins(desk: &Desk) -> Proof {
    let hundred = row(1, bucket(100, 1, S));
    desk.one(&asking(10, &hundred), 0)?;
    let lower = desk.reconcile(view(50, 0), S)?;
    same("refilled to now", lower, Reconciled { before: 91, after: 51 })?;
    let older = desk.reconcile(view(20, -10 * S), S)?;
    same("also an older one", older, Reconciled { before: 51, after: 31 })?;
    let owed = desk.reconcile(view(-5, S), S)?;
    same("also debt", owed, Reconciled { before: 31, after: -5 })?;
    same("it is so", desk.free(&hundred, S)?, -5)
}

pub(super) fn an_upstreams_higher_view_needs_an_untouched_bucket(desk: &Desk) -> Proof {
    let hundred = row(1, bucket(100, 1, S));
    desk.one(&asking(60, &hundred), 5 * S)?;
    let stale = desk.reconcile(view(90, 5 * S - 1), 5 * S)?;
    same("seen before our charge", stale, Reconciled { before: 40, after: 40 })?;
    let fresh = desk.reconcile(view(90, 5 * S), 7 * S)?;
    same("seen after it", fresh, Reconciled { before: 42, after: 92 })?;
    let above = desk.reconcile(view(1_000, 8 * S), 8 * S)?;
    same("never above the size", above, Reconciled { before: 93, after: 100 })
}
