//! Blocks: when they start, when they end, and who sees them.

use catraca_core::batch::{CheckRow, Verdict};
use catraca_core::cell::block::{Act, Origin};
use catraca_core::limit::Penalty;
use catraca_core::time::{Span, Time};

use super::desk::*;

/// One unit per second, and a minute's block for the second.
fn strict(number: u8) -> CheckRow {
    blocking(60 * S, &row(number, window(1, S)))
}

/// One unit per second, and blocks of one, two and at most three minutes.
fn escalating(number: u8) -> CheckRow {
    let minutes = |minutes: i64| Span::from_secs(60 * minutes);
    let (first, max, forget) = (minutes(1), minutes(3), minutes(10));
    let penalty = Some(Penalty { first, factor: 2, max, forget });
    CheckRow { penalty, ..row(number, window(1, S)) }
}

/// Takes the one unit and asks for another; gives the end of the block in microseconds.
fn offend(desk: &Desk, row: &CheckRow, at: i64) -> Result<i64, String> {
    same("free before the offence", desk.one(row, at)?.verdict, Verdict::Fits)?;
    let reply = desk.one(row, at)?;
    same("the offence", (reply.verdict, reply.started), (Verdict::OverLimit, true))?;
    let block = reply.block.ok_or("an excess without a block")?;
    same("its origin", block.origin, Origin::Excess)?;
    Ok(block.until.micros() - instant(0).micros())
}

pub(super) fn an_excess_blocks_once_and_to_the_instant(desk: &Desk) -> Proof {
    let strict = strict(1);
    same("the end", offend(desk, &strict, 0)?, 60 * S)?;
    for at in [1, 30 * S, 60 * S - 1] {
        let reply = desk.one(&strict, at)?;
        same("blocked", (reply.verdict, reply.started), (Verdict::Blocked, false))?;
        same("not extended", reply.fits_at, Some(instant(60 * S)))?;
        same("all back", reply.full_at, instant(60 * S))?;
    }
    let free = desk.one(&strict, 60 * S)?;
    same("free at the end", (free.verdict, free.block), (Verdict::Fits, None))
}

pub(super) fn a_block_gives_no_quota_back(desk: &Desk) -> Proof {
    let slow = blocking(5 * S, &row(1, window(2, 60 * S)));
    desk.one(&asking(2, &slow), 0)?;
    let over = desk.one(&slow, S)?;
    same("the later of both", over.fits_at, Some(instant(60 * S)))?;
    same("in excess again", desk.one(&slow, 6 * S)?.verdict, Verdict::OverLimit)?;
    let blocked = desk.one(&asking(2, &slow), 7 * S)?;
    same("attempts do not count", blocked.fits_at, Some(instant(60 * S)))?;
    same("free at last", desk.one(&asking(2, &slow), 60 * S)?.verdict, Verdict::Fits)
}

pub(super) fn the_later_end_wins(desk: &Desk) -> Proof {
    let act = |secs| ordered(Origin::Operator, Span::from_secs(secs));
    let first = desk.block(key(1), act(100), 0)?;
    same("started", (first.until, first.changed), (instant(100 * S), true))?;
    same("its reason", first.note.reason.as_deref(), Some("asked for"))?;
    let shorter = desk.block(key(1), ordered(Origin::Ban, Span::from_secs(50)), S)?;
    same("shorter", (shorter.until, shorter.changed), (instant(100 * S), false))?;
    same("still the operator's", shorter.origin, Origin::Operator)?;
    let longer = desk.block(key(1), ordered(Origin::Ban, Span::from_secs(300)), 2 * S)?;
    same("longer", (longer.until, longer.changed), (instant(302 * S), true))?;
    same("now the ban's", longer.origin, Origin::Ban)
}

pub(super) fn a_block_without_end_stands(desk: &Desk) -> Proof {
    let one = row(1, window(5, S));
    let standing = desk.block(one.key, ordered(Origin::Operator, Span::FOREVER), 0)?;
    same("its end", standing.until, Time::FOREVER)?;
    let ten_years = 10 * 365 * 86_400 * S;
    for at in [1, ten_years, 2 * ten_years] {
        let reply = desk.one(&one, at)?;
        same("blocked", reply.verdict, Verdict::Blocked)?;
        same("for ever", (reply.fits_at, reply.full_at), (Some(Time::FOREVER), Time::FOREVER))?;
    }
    same("until released", desk.unblock(one.key, ten_years * 2)?, true)?;
    same("free", desk.one(&one, ten_years * 2)?.verdict, Verdict::Fits)
}

pub(super) fn a_release_says_whether_a_block_stood(desk: &Desk) -> Proof {
    let strict = strict(1);
    same("nothing yet", desk.unblock(strict.key, 0)?, false)?;
    offend(desk, &strict, 0)?;
    same("it stood", desk.unblock(strict.key, 2 * S)?, true)?;
    same("and not again", desk.unblock(strict.key, 2 * S)?, false)?;
    same("free", desk.one(&strict, 2 * S)?.verdict, Verdict::Fits)?;
    offend(desk, &strict, 10 * S)?;
    same("an ended one does not stand", desk.unblock(strict.key, 70 * S)?, false)
}

pub(super) fn repeated_offences_last_longer(desk: &Desk) -> Proof {
    let row = escalating(1);
    same("first", offend(desk, &row, 0)?, 60 * S)?;
    same("doubled", offend(desk, &row, 60 * S)?, 180 * S)?;
    same("at most", offend(desk, &row, 180 * S)?, 360 * S)?;
    same("remembered", offend(desk, &row, 960 * S - 1)?, 1_140 * S - 1)?;
    same("forgotten", offend(desk, &row, 1_740 * S - 1)?, 1_800 * S - 1)
}

pub(super) fn a_release_keeps_the_level(desk: &Desk) -> Proof {
    let row = escalating(1);
    offend(desk, &row, 0)?;
    same("released", desk.unblock(row.key, 10 * S)?, true)?;
    same("and worse than before", offend(desk, &row, 11 * S)?, 131 * S)?;
    desk.reset(row.key, 12 * S)?;
    same("a reset forgets it", offend(desk, &row, 13 * S)?, 73 * S)
}

pub(super) fn shadow_blocks_are_seen_by_shadow_rows_only(desk: &Desk) -> Proof {
    let shadow = CheckRow { shadow: true, ..strict(1) };
    offend(desk, &shadow, 0)?;
    same("the shadow's own", desk.one(&shadow, 2 * S)?.verdict, Verdict::Blocked)?;
    same("nobody else's", desk.one(&strict(1), 2 * S)?.verdict, Verdict::Fits)?;
    let real = desk.one(&strict(1), 2 * S)?;
    same("a real one replaces it", real.started, true)?;
    let end = real.block.map(|block| block.until);
    same("with its own end", end, Some(instant(62 * S)))?;
    same("seen by both", desk.one(&shadow, 61 * S)?.verdict, Verdict::Blocked)?;
    let long = ordered(Origin::Operator, Span::from_secs(3_600));
    let act = Act { shadow: true, ..long };
    let standing = desk.block(key(1), act, 61 * S)?;
    same("a shadow never touches it", standing.until, instant(62 * S))
}

pub(super) fn a_reset_forgets_everything(desk: &Desk) -> Proof {
    let limits = [bucket(1, 1, 3_600 * S), window(1, 3_600 * S), fixed(1, 3_600 * S, false)];
    for (number, limit) in (1..).zip(limits) {
        let one = blocking(3_600 * S, &row(number, limit));
        offend(desk, &one, 0)?;
        desk.reset(one.key, S)?;
        let reply = desk.one(&one, S)?;
        same("as new", (reply.verdict, reply.free, reply.block), (Verdict::Fits, 0, None))?;
    }
    let lease = CheckRow { lease: 1, ..row(9, inflight(1, 3_600 * S)) };
    desk.one(&lease, 0)?;
    desk.reset(lease.key, S)?;
    same("leases too", desk.one(&lease, S)?.verdict, Verdict::Fits)
}
