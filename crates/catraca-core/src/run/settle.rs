//! Applies a settle: replaces the held amount of each row by its real cost, once, then evaluates
//! ban rules and watched ratios.
//!
//! A ticket is settled at most once, and never after it has expired. The settled-marker makes a
//! second settle return the first result.

use super::blocks::{self, strikes_key};
use super::meter::Meter;
use crate::batch::{BanRow, RowSettlement, SettleBatch, SettleReply, SettleRow, WatchRow};
use crate::cell::block::{BlockNote, BlockProposal, Origin};
use crate::cell::{
    Block, CellStore, CellTable, RatioWatch, Reference, SettledMarker, SlidingWindow,
};
use crate::limit::{EXACT_MAX, Limit, Penalty, WindowTerms};
use crate::price::Price;
use crate::time::Time;

/// Settles a ticket, or returns the result of its first settle.
pub fn run<C: CellStore>(settle: &SettleBatch, cells: &mut C, now: Time) -> SettleReply {
    // The marker is forgotten at the same instant. A later settle would not find it and would
    // charge twice, so it must be refused.
    if now >= settle.expires {
        return SettleReply::Expired { now };
    }
    let first: Option<&mut SettledMarker> = cells.get(settle.marker, now);
    if let Some(first) = first {
        let rows = first.rows.clone();
        return SettleReply::Settled { now, already_settled: true, rows, blocks: Vec::new() };
    }
    // The marker is written before anything is charged. Without room for it, a repeated settle
    // would be applied twice, so nothing is applied at all.
    if !cells.put(settle.marker, SettledMarker { expires: settle.expires, rows: Vec::new() }, now) {
        return SettleReply::Full;
    }
    let mut rows: Vec<RowSettlement> =
        settle.rows.iter().map(|row| settle_cost(row, cells, now)).collect();
    // Which rows' blocks were started or extended. Unlike `started`, also by a shadow ban, which
    // is recorded and not reported.
    let mut moved: Vec<bool> = rows.iter().map(|result| result.started.is_some()).collect();
    // Every row pays before the outcome is evaluated: no strike is counted if paying has started a
    // block. Rows of one policy are adjacent, and have the same family.
    let mut start = 0;
    for policy_rows in settle.rows.chunk_by(|one, next| one.family == next.family) {
        let end = start + policy_rows.len();
        let results = SettleResults { rows: &mut rows[start..end], moved: &mut moved[start..end] };
        evaluate_outcome(policy_rows, results, cells, now);
        start = end;
    }
    // Read after all bans: a ban that one key triggers blocks the other keys of its policy.
    let mut blocks = Vec::new();
    for ((row, result), moved) in settle.rows.iter().zip(&mut rows).zip(moved) {
        read_figures(row, result, cells, now);
        let block = blocks::active_block(row.key, true, cells, now).filter(|_| moved);
        blocks.extend(block.map(|block| (result.ticket_index, block.clone())));
    }
    // `edit`, because the marker grows by its rows and the pool accounts for its size.
    cells.edit(settle.marker, now, |mark: &mut SettledMarker| mark.rows = rows.clone());
    update_reference(settle, cells, now);
    SettleReply::Settled { now, already_settled: false, rows, blocks }
}

/// Stores the settled status in the reference, but only if the check of this ticket still owns it:
/// the reference may have expired and have been taken by another check.
fn update_reference<C: CellTable<Reference>>(settle: &SettleBatch, cells: &mut C, now: Time) {
    if let Some(update) = &settle.reference
        && let Some(reference) = cells.get(update.key, now)
        && reference.owner == update.owner
    {
        // Zero means settled without a status. Changed in place: the size stays the same.
        reference.settled = Some(update.status.unwrap_or(0));
    }
}

/// Settles the cost of one row, and starts the block that an excess or the upstream causes.
fn settle_cost<C: CellStore>(row: &SettleRow, cells: &mut C, now: Time) -> RowSettlement {
    let mut meter = Meter::read(&row.limit, row.counter(), row.on_full, cells, now);
    let mut result = RowSettlement { ticket_index: row.ticket_index, ..RowSettlement::default() };
    // The sum can exceed 2^53, the largest integer that every store computes exactly.
    result.charged =
        (row.held + charge_difference(row, &mut meter, cells, &mut result)).min(EXACT_MAX);
    // After the excess: the later end wins, and brings its origin; an equal end changes nothing, so
    // then the block remains an excess.
    if let Some(span) = row.upstream {
        let proposal = BlockProposal {
            penalty: Penalty::without_escalation(span),
            ..proposal_of(row, Origin::Upstream)
        };
        let started = blocks::propose_block(row.key, &proposal, cells, meter.now);
        report_block(&mut result, started, Origin::Upstream, None);
    }
    result
}

/// The results of some rows, and whether each row's block was started or extended.
struct SettleResults<'r> {
    rows: &'r mut [RowSettlement],
    moved: &'r mut [bool],
}

/// Evaluates the outcome for the rows of one policy. A ban that one key triggers blocks all keys of
/// the policy in the ticket (`each` has several).
fn evaluate_outcome<C: CellStore>(
    rows: &[SettleRow],
    mut results: SettleResults<'_>,
    cells: &mut C,
    now: Time,
) {
    // Conditions do not depend on the row, so all rows have the same bans, and the same watch.
    let Some(first) = rows.first() else { return };
    for (index, ban) in first.bans.iter().enumerate() {
        let mut is_triggered = false;
        for row in rows {
            // No short circuit: every key gets its strike, even if an earlier key triggers the ban.
            is_triggered |=
                row.bans.get(index).is_some_and(|ban| count_strike(row, ban, cells, now));
        }
        if is_triggered {
            ban_all(rows, &ban.proposal, Some(ban.rule), &mut results, cells, now);
        }
    }
    if let Some(watch) = &first.watch {
        let mut is_triggered = false;
        for row in rows {
            is_triggered |= count_in_ratio(row, watch, cells, now);
        }
        if is_triggered {
            ban_all(rows, &watch.proposal, None, &mut results, cells, now);
        }
    }
}

fn ban_all<C: CellStore>(
    rows: &[SettleRow],
    proposal: &BlockProposal,
    rule: Option<u8>,
    results: &mut SettleResults<'_>,
    cells: &mut C,
    now: Time,
) {
    let results = results.rows.iter_mut().zip(results.moved.iter_mut());
    for (row, (result, moved)) in rows.iter().zip(results) {
        let changed = blocks::propose_block(row.key, proposal, cells, now);
        *moved |= changed;
        // Bans in shadow mode take effect, but are not reported. The engine counts only reported
        // bans towards a ban storm.
        report_block(result, changed && !proposal.shadow, Origin::Ban, rule);
    }
}

/// Fills in the figures of a row after all charges and bans.
fn read_figures<C: CellStore>(
    row: &SettleRow,
    result: &mut RowSettlement,
    cells: &mut C,
    now: Time,
) {
    let meter = Meter::read(&row.limit, row.counter(), row.on_full, cells, now);
    let block = blocks::active_block(row.key, row.shadow, cells, now);
    result.blocked_until = block.map(|block| block.until);
    let is_counted = row.limit.capacity().is_some() && meter.is_counted();
    result.free = is_counted.then(|| meter.free(cells));
}

/// The block that a row proposes: that of its policy, in the mode of the row.
fn proposal_of(row: &SettleRow, origin: Origin) -> BlockProposal {
    // The default is never applied: an excess needs a penalty, and the upstream brings its own.
    let penalty = row.penalty.unwrap_or(Penalty::without_escalation(crate::time::Span::ZERO));
    BlockProposal::new(penalty, origin, row.shadow, BlockNote::default())
}

/// Reports the last proposal that started or extended a block.
fn report_block(result: &mut RowSettlement, changed: bool, origin: Origin, rule: Option<u8>) {
    if changed {
        result.started = Some(origin);
        result.rule = rule;
    }
}

/// Charges or refunds the difference between the real cost and the held amount. Returns the
/// difference that was applied; negative for a refund.
fn charge_difference<C: CellStore>(
    row: &SettleRow,
    meter: &mut Meter<'_>,
    cells: &mut C,
    result: &mut RowSettlement,
) -> i64 {
    if row.limit.takes_lease() {
        meter.release_lease(cells, row.lease);
        return 0;
    }
    if let Limit::Unlimited = row.limit {
        return 0;
    }
    // Before the charge: the crossing of the limit is judged against it. The charges below need no
    // lease id, since in-flight rows have returned.
    let free = meter.free(cells);
    match row.price {
        // The upstream says that the quota is used up, so everything free is charged; debt stays.
        Price::Drain => meter.charge(cells, free.max(0), 0),
        Price::Units(real) if real < row.held => -meter.refund(cells, row.at, row.held - real),
        Price::Units(real) => {
            let extra = real - row.held;
            if !meter.is_overflow {
                start_block_if_crossing(row, extra, free, cells, meter.now, result);
            }
            // Without `debt`, at most what is free is charged, so that free does not fall below
            // zero.
            let payable = if row.debt { extra } else { extra.min(free.max(0)) };
            meter.charge(cells, payable, 0)
        }
    }
}

/// Starts the block of the policy if the settle charges more than is free: that is an excess, as at
/// a check. Not called for a shared counter, whose units are no evidence against this key.
fn start_block_if_crossing<C: CellStore>(
    row: &SettleRow,
    extra: i64,
    free: i64,
    cells: &mut C,
    now: Time,
    result: &mut RowSettlement,
) {
    // `free` may be negative: then any extra charge crosses the limit, but a price that is equal to
    // the held amount does not.
    let crosses = extra > 0 && extra > free;
    if crosses && row.penalty.is_some() {
        let started = blocks::propose_block(row.key, &proposal_of(row, Origin::Excess), cells, now);
        report_block(result, started, Origin::Excess, None);
    }
}

/// Adds a strike to one key. Returns whether the rule bans.
fn count_strike<C: CellStore>(row: &SettleRow, ban: &BanRow, cells: &mut C, now: Time) -> bool {
    // No strike is added while a block is active (docs/semantics.md, 5). A rule without `after`
    // needs no strikes and bans even then.
    if ban.after.is_some() && is_blocked(row, cells, now) {
        return false;
    }
    add_strike(row, ban, cells, now)
}

fn is_blocked<C: CellTable<Block>>(row: &SettleRow, cells: &mut C, now: Time) -> bool {
    blocks::active_block(row.key, row.shadow, cells, now).is_some()
}

/// Adds a strike and returns whether the rule's number of strikes is reached; then the strikes are
/// removed. If the store has no room for the strike, it is not counted and no ban starts.
fn add_strike<C: CellStore>(row: &SettleRow, ban: &BanRow, cells: &mut C, now: Time) -> bool {
    let Some(after) = ban.after else { return true };
    let key = strikes_key(row.key, ban.rule);
    // Strikes are an exact sliding window with one unit per strike.
    let windows = [WindowTerms { limit: after.amount, span: after.per }];
    let count = |log: &mut SlidingWindow| {
        log.prune(&windows, now);
        log.charge(&windows, now, 1);
        log.free(&windows) <= 0
    };
    let is_reached = cells.edit(key, now, count).unwrap_or_else(|| {
        let mut log = SlidingWindow::new(&windows);
        let is_reached = count(&mut log);
        // A strike has no reserved slot, unlike a counter, so `put` can fail.
        cells.put(key, log, now) && is_reached
    });
    if is_reached {
        // A ban clears its evidence: otherwise the next strike would ban again right after an
        // operator's release (docs/adr/0007).
        CellTable::<SlidingWindow>::remove(cells, key, now);
    }
    is_reached
}

/// Counts the outcome in one key's ratio and returns whether the ratio is too high; then its
/// counts are removed. If the store has no room for them, the outcome is not counted and no ban
/// starts.
fn count_in_ratio<C: CellStore>(
    row: &SettleRow,
    watch: &WatchRow,
    cells: &mut C,
    now: Time,
) -> bool {
    // Nothing is counted while a block is active (docs/semantics.md, 5).
    if is_blocked(row, cells, now) {
        return false;
    }
    let count = |cell: &mut RatioWatch| {
        cell.count(watch.per, now, watch.in_part);
        cell.totals()
    };
    let totals = cells.edit(row.key, now, count).or_else(|| {
        let mut cell = RatioWatch::new(watch.per, now);
        let totals = count(&mut cell);
        cells.put(row.key, cell, now).then_some(totals)
    });
    let Some((part, whole)) = totals else { return false };
    // Below `min` outcomes the ratio is not evaluated.
    let exceeded = whole >= watch.min && watch.above.is_exceeded_by(part, whole);
    if exceeded {
        // Cleared for the same reason as strikes.
        CellTable::<RatioWatch>::remove(cells, row.key, now);
    }
    exceeded
}
