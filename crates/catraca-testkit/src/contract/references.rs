//! Contract cases of references, of credits, which find their check by its reference, and of
//! reconciling a bucket with the upstream's view.

use std::slice::from_ref;

use catraca_core::batch::{
    BucketAdjustment, CheckBatch, CheckReply, CheckRow, CreditReply, CreditRow, NewReference,
    ReconcileRow, ReferenceUpdate, RowVerdict, SettleBatch,
};
use catraca_core::cell::block::Origin;
use catraca_core::digest::Key;
use catraca_core::time::Span;

use super::harness::*;

/// The key that identifies the check of a ticket as the owner of its reference.
fn owner(ticket: u8) -> Key {
    key(150 + ticket)
}

/// Checks some rows and stores them under one reference for ten seconds.
pub(super) fn check_with_reference(
    harness: &StoreHarness,
    rows: &[CheckRow],
    ticket: u8,
    at: i64,
) -> Result<CheckReply, String> {
    let span = Span::from_secs(10);
    let remember =
        NewReference { key: key(200), owner: owner(ticket), ticket: Box::new([ticket; 3]), span };
    let rows = rows.iter().cloned().collect();
    harness.check_batch(
        CheckBatch { rows, new_reference: Some(Box::new(remember)), ..CheckBatch::default() },
        at,
    )
}

pub(super) fn the_first_admitted_check_owns_a_reference(harness: &StoreHarness) -> CaseResult {
    let two = row(1, window(2, S));
    let denied = check_with_reference(harness, &[with_held(3, &two)], 1, 0)?;
    same("a denied check owns nothing", denied.remembered, false)?;
    same("nothing is known", harness.recall(key(200), 0)?, None)?;
    same("the first", check_with_reference(harness, from_ref(&two), 2, 1)?.remembered, true)?;
    let second = check_with_reference(harness, &[two], 3, 2)?;
    same("the second passes", (second.passed, second.remembered), (true, false))?;
    let known = harness.recall(key(200), 3)?.ok_or("a remembered check is unknown")?;
    same("the first one's ticket", &*known.ticket, &[2; 3][..])?;
    same("and instant", known.instants, vec![Some(instant(1))])
}

pub(super) fn a_reference_knows_its_charged_rows_and_its_outcome(
    harness: &StoreHarness,
) -> CaseResult {
    let shadow = CheckRow { shadow: true, ..row(1, window(1, 60 * S)) };
    harness.check_one(&shadow, 0)?;
    let real = row(2, bucket(5, 1, S));
    check_with_reference(harness, &[shadow, real.clone()], 1, S)?;
    let known = harness.recall(key(200), S)?.ok_or("a remembered check is unknown")?;
    same("instants", known.instants, vec![None, Some(instant(S))])?;
    same("not settled", (known.settled, known.credited.len()), (None, 0))?;
    // A settle without a status is stored as 0.
    for (mark, status, stored) in [(100, Some(404), 404), (101, None, 0)] {
        let mark = key(mark);
        let expires = instant(60 * S);
        let rows = vec![settle_row(&real, S, 1)];
        let update = ReferenceUpdate { key: key(200), owner: owner(1), status };
        harness.settle(
            SettleBatch { marker: mark, expires, rows, reference: Some(Box::new(update)) },
            S,
        )?;
        let known = harness.recall(key(200), S)?.ok_or("a settled check is unknown")?;
        same("settled with", known.settled, Some(stored))?;
    }
    Ok(())
}

pub(super) fn a_reference_hears_only_of_its_own_check(harness: &StoreHarness) -> CaseResult {
    let shadow = CheckRow { shadow: true, ..row(1, window(1, 600 * S)) };
    harness.check_one(&shadow, 0)?;
    for ticket in [1, 2] {
        let at = i64::from(ticket) * 20 * S;
        same(
            "taken",
            check_with_reference(harness, from_ref(&shadow), ticket, at)?.remembered,
            true,
        )?;
    }
    // Neither check was charged, so only the owner distinguishes them: the first check no longer
    // owns the reference, and its settle must not be stored there.
    for (ticket, settled) in [(1, None), (2, Some(200))] {
        let update = ReferenceUpdate { key: key(200), owner: owner(ticket), status: Some(200) };
        let mark = owner(ticket);
        let expires = instant(600 * S);
        let reference = Some(Box::new(update));
        harness
            .settle(SettleBatch { marker: mark, expires, rows: Vec::new(), reference }, 41 * S)?;
        let known = harness.recall(key(200), 41 * S)?.ok_or("a remembered check is unknown")?;
        same("settled with", known.settled, settled)?;
    }
    Ok(())
}

pub(super) fn a_reference_is_forgotten_on_time(harness: &StoreHarness) -> CaseResult {
    let many = row(1, window(9, S));
    check_with_reference(harness, from_ref(&many), 1, 0)?;
    same("known", harness.recall(key(200), 10 * S - 1)?.is_some(), true)?;
    same("forgotten", harness.recall(key(200), 10 * S)?, None)?;
    let given = CreditRow { key: key(2), terms: terms(5, 1, S), shared: None, amount: 1 };
    let credit = harness.credit(key(200), "payment", given, 10 * S)?;
    same("no credit", credit, CreditReply::Unknown)?;
    same("free for another", check_with_reference(harness, &[many], 2, 10 * S)?.remembered, true)
}

pub(super) fn a_credit_counts_once_per_event(harness: &StoreHarness) -> CaseResult {
    let ten = row(1, bucket(10, 1, 3_600 * S));
    check_with_reference(harness, &[with_held(8, &ten)], 1, 0)?;
    let give =
        |amount| CreditRow { key: ten.key, terms: terms(10, 1, 3_600 * S), shared: None, amount };
    let credit = |event, amount| harness.credit(key(200), event, give(amount), S);
    same("two", credit("a", 2)?, CreditReply::Applied(vec![2]))?;
    same("once", credit("a", 2)?, CreditReply::Duplicate)?;
    same("another event", credit("b", 3)?, CreditReply::Applied(vec![3]))?;
    same("free", harness.free(&ten, S)?, 7)?;
    let known = harness.recall(key(200), S)?.ok_or("a remembered check is unknown")?;
    let events: Vec<&str> = known.credited.iter().map(|event| &**event).collect();
    same("events", events, vec!["a", "b"])
}

pub(super) fn a_credit_is_capped_and_lifts_no_block(harness: &StoreHarness) -> CaseResult {
    let ten = row(1, bucket(10, 1, 3_600 * S));
    check_with_reference(harness, &[with_held(10, &ten)], 1, 0)?;
    harness.block(ten.key, block_proposal(Origin::Operator, Span::from_secs(100)), 0)?;
    let give = |number| CreditRow {
        key: key(number),
        terms: terms(10, 1, 3_600 * S),
        shared: None,
        amount: 120,
    };
    let all = harness.credit(key(200), "a", give(1), S)?;
    same("to its size", all, CreditReply::Applied(vec![10]))?;
    let full = harness.credit(key(200), "b", give(2), S)?;
    same("a full one takes none", full, CreditReply::Applied(vec![0]))?;
    let blocked = harness.check_one(&ten, S)?;
    same("blocked still", (blocked.verdict, blocked.free), (RowVerdict::Blocked, 10))
}

fn view(available: i64, observed_at: i64) -> ReconcileRow {
    let observed_at = instant(observed_at);
    ReconcileRow { key: key(1), terms: terms(100, 1, S), shared: None, available, observed_at }
}

pub(super) fn an_upstreams_lower_view_wins(harness: &StoreHarness) -> CaseResult {
    let hundred = row(1, bucket(100, 1, S));
    harness.check_one(&with_held(10, &hundred), 0)?;
    // 50 tokens were observed at 0 s; one more was refilled until 1 s.
    let lower = harness.reconcile(view(50, 0), S)?;
    same("refilled to now", lower, BucketAdjustment { before: 91, after: 51 })?;
    let older = harness.reconcile(view(20, -10 * S), S)?;
    same("also an older one", older, BucketAdjustment { before: 51, after: 31 })?;
    let owed = harness.reconcile(view(-5, S), S)?;
    same("also debt", owed, BucketAdjustment { before: 31, after: -5 })?;
    same("it is so", harness.free(&hundred, S)?, -5)
}

pub(super) fn an_upstreams_higher_view_needs_an_untouched_bucket(
    harness: &StoreHarness,
) -> CaseResult {
    let hundred = row(1, bucket(100, 1, S));
    harness.check_one(&with_held(60, &hundred), 5 * S)?;
    let stale = harness.reconcile(view(90, 5 * S - 1), 5 * S)?;
    same("seen before our charge", stale, BucketAdjustment { before: 40, after: 40 })?;
    let fresh = harness.reconcile(view(90, 5 * S), 7 * S)?;
    same("seen after it", fresh, BucketAdjustment { before: 42, after: 92 })?;
    let above = harness.reconcile(view(1_000, 8 * S), 8 * S)?;
    same("never above the size", above, BucketAdjustment { before: 93, after: 100 })
}
