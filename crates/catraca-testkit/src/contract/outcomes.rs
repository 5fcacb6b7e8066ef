//! What an outcome may start: bans, strikes and watched ratios.

use catraca_core::batch::{BanRow, RowSettled, SettleRow, Verdict, WatchRow};
use catraca_core::cell::block::Origin;
use catraca_core::limit::Limit;
use catraca_core::rate::{Percent, Rate};
use catraca_core::time::{Span, Time};

use super::desk::*;

/// What a settle started, by which rule, and the end that stands.
type Started = (Option<Origin>, Option<u8>, Option<Time>);

fn started(done: &RowSettled) -> Started {
    (done.started, done.rule, done.blocked_until)
}

const NOTHING: Started = (None, None, None);

/// A ten-minute ban after so many strikes in half a minute.
fn rule(rule: u8, after: Option<i64>) -> BanRow {
    let per = Span::from_secs(30);
    let after = after.map(|amount| Rate { amount, per });
    BanRow { rule, after, act: ordered(Origin::Ban, Span::from_secs(600)) }
}

fn offence(desk: &Desk, mark: u8, ban: BanRow, at: i64) -> Result<Started, String> {
    let bans = [ban].into_iter().collect();
    let row = SettleRow { bans, ..paid(&row(1, Limit::Unlimited), at, 0) };
    desk.settle_one(mark, row, at).map(|done| started(&done))
}

pub(super) fn a_rule_bans_at_once(desk: &Desk) -> Proof {
    let banned = offence(desk, 100, rule(3, None), 0)?;
    same("banned", banned, (Some(Origin::Ban), Some(3), Some(instant(600 * S))))?;
    let denied = desk.one(&row(1, Limit::Unlimited), 600 * S - 1)?;
    same("denied", denied.verdict, Verdict::Blocked)?;
    let block = denied.block.ok_or("a blocked row without its block")?;
    same("why", (block.origin, block.note.reason.as_deref()), (Origin::Ban, Some("asked for")))?;
    same("free", desk.one(&row(1, Limit::Unlimited), 600 * S)?.verdict, Verdict::Fits)
}

pub(super) fn strikes_ban_together_and_are_spent(desk: &Desk) -> Proof {
    let two = || rule(0, Some(2));
    same("one", offence(desk, 100, two(), 0)?, NOTHING)?;
    let other = offence(desk, 101, rule(1, Some(2)), 0)?;
    same("another rule counts alone", other, NOTHING)?;
    let banned = offence(desk, 102, two(), 30 * S - 1)?;
    let until = Some(instant(630 * S - 1));
    same("two", banned, (Some(Origin::Ban), Some(0), until))?;
    same("spent", offence(desk, 103, two(), 630 * S - 1)?, NOTHING)
}

pub(super) fn strikes_age_and_rest_while_a_block_stands(desk: &Desk) -> Proof {
    let two = || rule(0, Some(2));
    same("one", offence(desk, 100, two(), 0)?, NOTHING)?;
    same("exactly too old", offence(desk, 101, two(), 30 * S)?, NOTHING)?;
    desk.block(key(1), ordered(Origin::Operator, Span::from_secs(10)), 30 * S)?;
    let standing = (None, None, Some(instant(40 * S)));
    same("not counted", offence(desk, 102, two(), 31 * S)?, standing)?;
    same("nor that", offence(desk, 103, two(), 32 * S)?, standing)?;
    desk.reset(key(1), 41 * S)?;
    same("a reset forgets strikes", offence(desk, 104, two(), 42 * S)?, NOTHING)
}

/// More than a share of at least `min` outcomes in 24 seconds, which are 24 slices.
fn watched(in_part: bool, percent: u32, min: i64) -> Box<WatchRow> {
    Box::new(WatchRow {
        in_part,
        per: Span::from_secs(24),
        above: Percent::from_hundredths(percent * 100),
        min,
        act: ordered(Origin::Ban, Span::from_secs(600)),
    })
}

fn outcome(desk: &Desk, mark: u8, watch: Box<WatchRow>, at: i64) -> Result<Started, String> {
    let row = SettleRow { watch: Some(watch), ..paid(&row(1, Limit::Unlimited), at, 0) };
    desk.settle_one(mark, row, at).map(|done| started(&done))
}

pub(super) fn a_watched_ratio_bans(desk: &Desk) -> Proof {
    for mark in 100..109 {
        let part = mark < 102;
        same("too few", outcome(desk, mark, watched(part, 20, 10), 0)?, NOTHING)?;
    }
    let share = outcome(desk, 110, watched(false, 20, 10), S)?;
    same("exactly the share", share, NOTHING)?;
    let banned = outcome(desk, 111, watched(true, 20, 10), S)?;
    same("more", banned, (Some(Origin::Ban), None, Some(instant(601 * S))))?;
    let standing = (None, None, Some(instant(601 * S)));
    same("not counted", outcome(desk, 112, watched(true, 20, 1), 2 * S)?, standing)?;
    same("cleared", outcome(desk, 113, watched(true, 20, 2), 601 * S)?, NOTHING)
}

pub(super) fn a_watched_ratio_forgets_whole_slices(desk: &Desk) -> Proof {
    same("one", outcome(desk, 100, watched(true, 40, 2), S - 1)?, NOTHING)?;
    let dropped = outcome(desk, 101, watched(false, 40, 1), 24 * S)?;
    same("dropped whole", dropped, NOTHING)?;
    let kept = outcome(desk, 102, watched(true, 40, 2), 48 * S - 1)?;
    same("kept to its end", kept, (Some(Origin::Ban), None, Some(instant(648 * S - 1))))
}

pub(super) fn a_ban_and_an_operator_keep_the_later_end(desk: &Desk) -> Proof {
    desk.block(key(1), ordered(Origin::Operator, Span::from_secs(700)), 0)?;
    let shorter = offence(desk, 100, rule(0, None), 0)?;
    same("shorter", shorter, (None, None, Some(instant(700 * S))))?;
    let longer = offence(desk, 101, rule(0, None), 200 * S)?;
    same("longer", longer, (Some(Origin::Ban), Some(0), Some(instant(800 * S))))
}
