//! Contract cases of blocks: when they start and end, and which rows they deny.

use catraca_core::batch::{Batch, CheckRow, Reply, RowVerdict, UnblockRow};
use catraca_core::cell::block::{BlockProposal, Origin, PriorOffences};
use catraca_core::limit::Penalty;
use catraca_core::time::{Span, Time};

use super::harness::*;

/// One unit per second; exceeding it blocks for a minute.
fn strict(number: u8) -> CheckRow {
    with_block(60 * S, &row(number, window(1, S)))
}

/// One unit per second; exceeding it repeatedly blocks for one, two and at most three minutes.
fn escalating(number: u8) -> CheckRow {
    let minutes = |minutes: i64| Span::from_secs(60 * minutes);
    let penalty = Penalty { first: minutes(1), factor: 2, max: minutes(3), forget: minutes(10) };
    let penalty = Some(penalty);
    CheckRow { penalty, ..row(number, window(1, S)) }
}

/// Takes the one unit and exceeds the limit; returns the end of the block in microseconds from
/// the start.
fn offend(harness: &StoreHarness, row: &CheckRow, at: i64) -> Result<i64, String> {
    same("free before the offence", harness.check_one(row, at)?.verdict, RowVerdict::Fits)?;
    let reply = harness.check_one(row, at)?;
    same("the offence", (reply.verdict, reply.started), (RowVerdict::OverLimit, true))?;
    let block = reply.block.ok_or("an excess without a block")?;
    same("its origin", block.origin, Origin::Excess)?;
    Ok(block.until.micros() - instant(0).micros())
}

pub(super) fn an_excess_blocks_once_and_to_the_instant(harness: &StoreHarness) -> CaseResult {
    let strict = strict(1);
    same("the end", offend(harness, &strict, 0)?, 60 * S)?;
    for at in [1, 30 * S, 60 * S - 1] {
        let reply = harness.check_one(&strict, at)?;
        same("blocked", (reply.verdict, reply.started), (RowVerdict::Blocked, false))?;
        same("not extended", reply.fits_at, Some(instant(60 * S)))?;
        same("all back", reply.full_at, instant(60 * S))?;
    }
    let free = harness.check_one(&strict, 60 * S)?;
    same("free at the end", (free.verdict, free.block), (RowVerdict::Fits, None))
}

pub(super) fn a_block_gives_no_quota_back(harness: &StoreHarness) -> CaseResult {
    let slow = with_block(5 * S, &row(1, window(2, 60 * S)));
    harness.check_one(&with_held(2, &slow), 0)?;
    // The block ends at 6 s, but the units leave the window at 60 s.
    let over = harness.check_one(&slow, S)?;
    same("the later of both", over.fits_at, Some(instant(60 * S)))?;
    same("in excess again", harness.check_one(&slow, 6 * S)?.verdict, RowVerdict::OverLimit)?;
    let blocked = harness.check_one(&with_held(2, &slow), 7 * S)?;
    same("attempts do not count", blocked.fits_at, Some(instant(60 * S)))?;
    same("free at last", harness.check_one(&with_held(2, &slow), 60 * S)?.verdict, RowVerdict::Fits)
}

pub(super) fn the_later_end_wins(harness: &StoreHarness) -> CaseResult {
    let act = |secs| block_proposal(Origin::Operator, Span::from_secs(secs));
    let first = harness.block(key(1), act(100), 0)?;
    same("started", (first.block.until, first.changed), (instant(100 * S), true))?;
    same("its reason", first.block.note.reason.as_deref(), Some("asked for"))?;
    let shorter = harness.block(key(1), block_proposal(Origin::Ban, Span::from_secs(50)), S)?;
    same("shorter", (shorter.block.until, shorter.changed), (instant(100 * S), false))?;
    same("still the operator's", shorter.block.origin, Origin::Operator)?;
    let longer = harness.block(key(1), block_proposal(Origin::Ban, Span::from_secs(300)), 2 * S)?;
    same("longer", (longer.block.until, longer.changed), (instant(302 * S), true))?;
    same("now the ban's", longer.block.origin, Origin::Ban)
}

pub(super) fn a_block_without_end_stands(harness: &StoreHarness) -> CaseResult {
    let one = row(1, window(5, S));
    let active = harness.block(one.key, block_proposal(Origin::Operator, Span::FOREVER), 0)?;
    same("its end", active.block.until, Time::FOREVER)?;
    let ten_years = 10 * 365 * 86_400 * S;
    for at in [1, ten_years, 2 * ten_years] {
        let reply = harness.check_one(&one, at)?;
        same("blocked", reply.verdict, RowVerdict::Blocked)?;
        same("for ever", (reply.fits_at, reply.full_at), (Some(Time::FOREVER), Time::FOREVER))?;
    }
    same("until released", harness.unblock(one.key, ten_years * 2)?, true)?;
    same("free", harness.check_one(&one, ten_years * 2)?.verdict, RowVerdict::Fits)
}

pub(super) fn a_release_says_whether_a_block_stood(harness: &StoreHarness) -> CaseResult {
    let strict = strict(1);
    same("nothing yet", harness.unblock(strict.key, 0)?, false)?;
    offend(harness, &strict, 0)?;
    same("a block was active", harness.unblock(strict.key, 2 * S)?, true)?;
    same("and not again", harness.unblock(strict.key, 2 * S)?, false)?;
    same("free", harness.check_one(&strict, 2 * S)?.verdict, RowVerdict::Fits)?;
    offend(harness, &strict, 10 * S)?;
    same("an ended block is not active", harness.unblock(strict.key, 70 * S)?, false)
}

pub(super) fn repeated_offences_last_longer(harness: &StoreHarness) -> CaseResult {
    let row = escalating(1);
    same("first", offend(harness, &row, 0)?, 60 * S)?;
    same("doubled", offend(harness, &row, 60 * S)?, 180 * S)?;
    same("at most", offend(harness, &row, 180 * S)?, 360 * S)?;
    // The level is remembered for 600 s after the end of a block, here until 960 s.
    same("remembered", offend(harness, &row, 960 * S - 1)?, 1_140 * S - 1)?;
    same("forgotten", offend(harness, &row, 1_740 * S - 1)?, 1_800 * S - 1)
}

/// A block that was read as the one to release may have ended and been followed by another.
pub(super) fn a_release_of_another_end_changes_nothing(harness: &StoreHarness) -> CaseResult {
    let strict = strict(1);
    let release = |until: i64, at: i64| {
        let row = UnblockRow { key: strict.key, only_until: Some(instant(until)) };
        harness.unblock_row(row, at)
    };
    same("the end", offend(harness, &strict, 0)?, 60 * S)?;
    same("nothing with an earlier end", release(50 * S - 1, S)?, false)?;
    same("nothing with a later end", release(70 * S + 1, S)?, false)?;
    same("still blocked", harness.check_one(&strict, 2 * S)?.verdict, RowVerdict::Blocked)?;
    same("the next", offend(harness, &strict, 60 * S)?, 120 * S)?;
    same("the first has ended", release(60 * S, 61 * S)?, false)?;
    same("blocked again", harness.check_one(&strict, 62 * S)?.verdict, RowVerdict::Blocked)?;
    same("the second is released", release(120 * S, 63 * S)?, true)?;
    same("and not again", release(120 * S, 63 * S)?, false)?;
    same("free", harness.check_one(&strict, 64 * S)?.verdict, RowVerdict::Fits)?;
    // As it is after a store has lost a block, and a node has written it again.
    same("the third", offend(harness, &strict, 200 * S)?, 260 * S)?;
    same("a little later", release(250 * S, 201 * S)?, true)?;
    same("the fourth", offend(harness, &strict, 300 * S)?, 360 * S)?;
    same("a little earlier", release(370 * S, 301 * S)?, true)
}

pub(super) fn a_release_keeps_the_level(harness: &StoreHarness) -> CaseResult {
    let row = escalating(1);
    offend(harness, &row, 0)?;
    same("released", harness.unblock(row.key, 10 * S)?, true)?;
    same("and worse than before", offend(harness, &row, 11 * S)?, 131 * S)?;
    harness.reset(row.key, 12 * S)?;
    same("a reset forgets it", offend(harness, &row, 13 * S)?, 73 * S)
}

pub(super) fn a_restored_level_is_forgotten_when_its_block_says(
    harness: &StoreHarness,
) -> CaseResult {
    let row = escalating(1);
    // A block of level 1 that ended 540 s ago: its level is remembered for another 60 s.
    let prior =
        PriorOffences { level: 1, forget: Span::from_secs(600), since_end: Span::from_secs(540) };
    let ended =
        BlockProposal { prior_offences: Some(prior), ..block_proposal(Origin::Ban, Span::ZERO) };
    let restore = Batch::Block(vec![(row.key, ended)]);
    same("not active", harness.apply(&restore, 0)?, Reply::Block(vec![None]))?;
    same("remembered", offend(harness, &row, 59 * S)?, 179 * S)?;
    harness.reset(row.key, 180 * S)?;
    harness.apply(&restore, 200 * S)?;
    same("forgotten", offend(harness, &row, 260 * S)?, 320 * S)?;
    harness.reset(row.key, 400 * S)?;
    harness.apply(&restore, 400 * S)?;
    // The same level, remembered for another 660 s. A shorter memory changes nothing.
    let longer = PriorOffences { forget: Span::from_secs(1_200), ..prior };
    let ended =
        BlockProposal { prior_offences: Some(longer), ..block_proposal(Origin::Ban, Span::ZERO) };
    harness.apply(&Batch::Block(vec![(row.key, ended)]), 400 * S)?;
    harness.apply(&restore, 400 * S)?;
    same("remembered for longer", offend(harness, &row, 900 * S)?, 1_020 * S)
}

pub(super) fn shadow_blocks_are_seen_by_shadow_rows_only(harness: &StoreHarness) -> CaseResult {
    let shadow = CheckRow { shadow: true, ..strict(1) };
    offend(harness, &shadow, 0)?;
    same("the shadow's own", harness.check_one(&shadow, 2 * S)?.verdict, RowVerdict::Blocked)?;
    same(
        "not of an enforcing row",
        harness.check_one(&strict(1), 2 * S)?.verdict,
        RowVerdict::Fits,
    )?;
    let real = harness.check_one(&strict(1), 2 * S)?;
    same("a real one replaces it", real.started, true)?;
    let end = real.block.map(|block| block.until);
    same("with its own end", end, Some(instant(62 * S)))?;
    same("seen by both", harness.check_one(&shadow, 61 * S)?.verdict, RowVerdict::Blocked)?;
    let long = block_proposal(Origin::Operator, Span::from_secs(3_600));
    let act = BlockProposal { shadow: true, ..long };
    let active = harness.block(key(1), act, 61 * S)?;
    same("a shadow block never changes a real one", active.block.until, instant(62 * S))
}

pub(super) fn shadow_and_real_levels_never_mix(harness: &StoreHarness) -> CaseResult {
    let real = escalating(1);
    let shadow = CheckRow { shadow: true, ..escalating(1) };
    same("the first real one", offend(harness, &real, 0)?, 60 * S)?;
    // Its level is remembered for 600 s after its end.
    harness.check_one(&shadow, 100 * S)?;
    let denied = harness.check_one(&shadow, 100 * S)?;
    same("a shadow act changes no remembered level", denied.started, false)?;
    same("which counts for the next real one", offend(harness, &real, 200 * S)?, 320 * S)?;
    same("a shadow level is of its own", offend(harness, &shadow, 2_000 * S)?, 2_060 * S)?;
    same("and rises", offend(harness, &shadow, 2_100 * S)?, 2_220 * S)?;
    same("without a real one", offend(harness, &real, 2_300 * S)?, 2_360 * S)
}

pub(super) fn a_reset_forgets_everything(harness: &StoreHarness) -> CaseResult {
    let limits = [bucket(1, 1, 3_600 * S), window(1, 3_600 * S), fixed_window(1, 3_600 * S, false)];
    for (number, limit) in (1..).zip(limits) {
        let one = with_block(3_600 * S, &row(number, limit));
        offend(harness, &one, 0)?;
        harness.reset(one.key, S)?;
        let reply = harness.check_one(&one, S)?;
        same("as new", (reply.verdict, reply.free, reply.block), (RowVerdict::Fits, 0, None))?;
    }
    let lease = CheckRow { lease: 1, ..row(9, inflight(1, 3_600 * S)) };
    harness.check_one(&lease, 0)?;
    harness.reset(lease.key, S)?;
    same("leases too", harness.check_one(&lease, S)?.verdict, RowVerdict::Fits)
}
