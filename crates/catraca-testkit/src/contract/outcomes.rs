//! Contract cases of outcomes: bans, strikes and watched ratios.

use catraca_core::batch::{BanRow, RowSettlement, RowVerdict, SettleRow, WatchRow};
use catraca_core::cell::block::Origin;
use catraca_core::limit::Limit;
use catraca_core::rate::{Percent, Rate};
use catraca_core::time::{Span, Time};

use super::harness::*;

/// The origin of the block that a settle started, the rule that started it, and when the active
/// block ends.
type BlockStart = (Option<Origin>, Option<u8>, Option<Time>);

fn block_start(done: &RowSettlement) -> BlockStart {
    (done.started, done.rule, done.blocked_until)
}

const NOTHING: BlockStart = (None, None, None);

/// A ten-minute ban after `after` strikes in 30 seconds, or at the first offence.
fn rule(rule: u8, after: Option<i64>) -> BanRow {
    let per = Span::from_secs(30);
    let after = after.map(|amount| Rate { amount, per });
    BanRow { rule, after, proposal: block_proposal(Origin::Ban, Span::from_secs(600)) }
}

fn offence(harness: &StoreHarness, mark: u8, ban: BanRow, at: i64) -> Result<BlockStart, String> {
    let bans = [ban].into_iter().collect();
    let row = SettleRow { bans, ..settle_row(&row(1, Limit::Unlimited), at, 0) };
    harness.settle_one(mark, row, at).map(|done| block_start(&done))
}

pub(super) fn a_rule_bans_at_once(harness: &StoreHarness) -> CaseResult {
    let banned = offence(harness, 100, rule(3, None), 0)?;
    same("banned", banned, (Some(Origin::Ban), Some(3), Some(instant(600 * S))))?;
    let denied = harness.check_one(&row(1, Limit::Unlimited), 600 * S - 1)?;
    same("denied", denied.verdict, RowVerdict::Blocked)?;
    let block = denied.block.ok_or("a blocked row without its block")?;
    same("why", (block.origin, block.note.reason.as_deref()), (Origin::Ban, Some("asked for")))?;
    same("free", harness.check_one(&row(1, Limit::Unlimited), 600 * S)?.verdict, RowVerdict::Fits)
}

pub(super) fn strikes_ban_together_and_are_spent(harness: &StoreHarness) -> CaseResult {
    let two = || rule(0, Some(2));
    same("one", offence(harness, 100, two(), 0)?, NOTHING)?;
    let other = offence(harness, 101, rule(1, Some(2)), 0)?;
    same("another rule counts alone", other, NOTHING)?;
    let banned = offence(harness, 102, two(), 30 * S - 1)?;
    let until = Some(instant(630 * S - 1));
    same("two", banned, (Some(Origin::Ban), Some(0), until))?;
    same("spent", offence(harness, 103, two(), 630 * S - 1)?, NOTHING)
}

pub(super) fn strikes_age_and_rest_while_a_block_stands(harness: &StoreHarness) -> CaseResult {
    let two = || rule(0, Some(2));
    same("one", offence(harness, 100, two(), 0)?, NOTHING)?;
    // The strike at 0 s no longer counts at 30 s, so this one is the first again.
    same("exactly too old", offence(harness, 101, two(), 30 * S)?, NOTHING)?;
    harness.block(key(1), block_proposal(Origin::Operator, Span::from_secs(10)), 30 * S)?;
    let active = (None, None, Some(instant(40 * S)));
    same("not counted", offence(harness, 102, two(), 31 * S)?, active)?;
    same("nor that", offence(harness, 103, two(), 32 * S)?, active)?;
    harness.reset(key(1), 41 * S)?;
    same("a reset forgets strikes", offence(harness, 104, two(), 42 * S)?, NOTHING)
}

/// A ban when more than `percent` of at least `min` outcomes match within 24 seconds. A watch
/// counts in 24 slices, hence slices of one second.
fn watch_row(in_part: bool, percent: u32, min: i64) -> Box<WatchRow> {
    Box::new(WatchRow {
        in_part,
        per: Span::from_secs(24),
        above: Percent::from_hundredths(percent * 100),
        min,
        proposal: block_proposal(Origin::Ban, Span::from_secs(600)),
    })
}

fn outcome(
    harness: &StoreHarness,
    mark: u8,
    watch: Box<WatchRow>,
    at: i64,
) -> Result<BlockStart, String> {
    let row = SettleRow { watch: Some(watch), ..settle_row(&row(1, Limit::Unlimited), at, 0) };
    harness.settle_one(mark, row, at).map(|done| block_start(&done))
}

pub(super) fn a_watched_ratio_bans(harness: &StoreHarness) -> CaseResult {
    for mark in 100..109 {
        let part = mark < 102;
        same("too few", outcome(harness, mark, watch_row(part, 20, 10), 0)?, NOTHING)?;
    }
    // Two of ten outcomes are exactly 20 %, which is not above it.
    let share = outcome(harness, 110, watch_row(false, 20, 10), S)?;
    same("exactly the share", share, NOTHING)?;
    let banned = outcome(harness, 111, watch_row(true, 20, 10), S)?;
    same("more", banned, (Some(Origin::Ban), None, Some(instant(601 * S))))?;
    let active = (None, None, Some(instant(601 * S)));
    same("not counted", outcome(harness, 112, watch_row(true, 20, 1), 2 * S)?, active)?;
    same("cleared", outcome(harness, 113, watch_row(true, 20, 2), 601 * S)?, NOTHING)
}

pub(super) fn a_watched_ratio_forgets_whole_slices(harness: &StoreHarness) -> CaseResult {
    same("one", outcome(harness, 100, watch_row(true, 40, 2), S - 1)?, NOTHING)?;
    // The slice from 0 s to 1 s leaves as a whole at 24 s, although its outcome is only 23 s old.
    let dropped = outcome(harness, 101, watch_row(false, 40, 1), 24 * S)?;
    same("dropped whole", dropped, NOTHING)?;
    let kept = outcome(harness, 102, watch_row(true, 40, 2), 48 * S - 1)?;
    same("kept to its end", kept, (Some(Origin::Ban), None, Some(instant(648 * S - 1))))
}

pub(super) fn a_ban_and_an_operator_keep_the_later_end(harness: &StoreHarness) -> CaseResult {
    harness.block(key(1), block_proposal(Origin::Operator, Span::from_secs(700)), 0)?;
    let shorter = offence(harness, 100, rule(0, None), 0)?;
    same("shorter", shorter, (None, None, Some(instant(700 * S))))?;
    let longer = offence(harness, 101, rule(0, None), 200 * S)?;
    same("longer", longer, (Some(Origin::Ban), Some(0), Some(instant(800 * S))))
}
