//! The settle: a reservation becomes its real cost, once; then bans and watched ratios are judged.
//!
//! Must not apply anything twice, nor anything after the ticket's time.

use super::blocks::{self, strikes_key};
use super::meter::Meter;
use crate::batch::{BanRow, RowSettled, Settle, SettleReply, SettleRow, WatchRow};
use crate::cell::block::{Act, Note, Origin};
use crate::cell::{Block, Cells, Log, Mark, Pool, Reference, Watch};
use crate::limit::{EXACT_MAX, Limit, Penalty, WindowTerms};
use crate::museum::{Bug, planted};
use crate::price::Price;
use crate::time::Time;

/// Settles a ticket, or repeats what the first settle answered.
pub fn run<C: Cells>(settle: &Settle, cells: &mut C, now: Time) -> SettleReply {
    if now >= settle.expires {
        return SettleReply::Expired { now };
    }
    let first: Option<&mut Mark> = cells.get(settle.mark, now);
    if let Some(first) = first.filter(|_| !planted(Bug::SettleTwice)) {
        return SettleReply::Settled { now, again: true, rows: first.rows.clone() };
    }
    if !cells.put(settle.mark, Mark { expires: settle.expires, rows: Vec::new() }, now) {
        return SettleReply::Full;
    }
    let mut rows: Vec<RowSettled> = settle.rows.iter().map(|row| pay(row, cells, now)).collect();
    let mut place = 0;
    for policy in settle.rows.chunk_by(|one, next| one.family == next.family) {
        judge(policy, &mut rows[place..place + policy.len()], cells, now);
        place += policy.len();
    }
    settle.rows.iter().zip(&mut rows).for_each(|(row, done)| show(row, done, cells, now));
    cells.edit(settle.mark, now, |mark: &mut Mark| mark.rows = rows.clone());
    tell_reference(settle, cells, now);
    SettleReply::Settled { now, again: false, rows }
}

/// Only the check that owns the reference is told of: it may have been forgotten and taken again.
fn tell_reference<C: Pool<Reference>>(settle: &Settle, cells: &mut C, now: Time) {
    if let Some(told) = &settle.reference
        && let Some(reference) = cells.get(told.key, now)
        && reference.owner == told.owner
    {
        reference.settled = Some(told.status.unwrap_or(0));
    }
}

/// What one row is charged, and the block that this or the upstream starts.
fn pay<C: Cells>(row: &SettleRow, cells: &mut C, now: Time) -> RowSettled {
    let mut meter = Meter::read(&row.limit, row.key, row.family, cells, now);
    let mut done = RowSettled { place: row.place, charged: row.held, ..RowSettled::default() };
    // A held amount and all that came back since may be more than every store counts exactly.
    done.charged = (row.held + apply(row, &mut meter, cells, &mut done)).min(EXACT_MAX);
    if let Some(span) = row.upstream {
        let act = Act { penalty: Penalty::fixed(span), ..act(row, Origin::Upstream) };
        note(&mut done, blocks::act(row.key, &act, cells, meter.now), Origin::Upstream, None);
    }
    done
}

/// Judges the outcome for the rows of one policy: what one key earns, all of them get.
fn judge<C: Cells>(rows: &[SettleRow], done: &mut [RowSettled], cells: &mut C, now: Time) {
    let Some(first) = rows.first() else { return };
    for (place, ban) in first.bans.iter().enumerate() {
        let mut out = false;
        for row in rows {
            out |= row.bans.get(place).is_some_and(|ban| strike(row, ban, cells, now));
        }
        if out {
            ban_all(rows, &ban.act, Some(ban.rule), done, cells, now);
        }
    }
    if let Some(watch) = &first.watch {
        let mut out = false;
        for row in rows {
            out |= exceeds(row, watch, cells, now);
        }
        if out {
            ban_all(rows, &watch.act, None, done, cells, now);
        }
    }
}

fn ban_all<C: Cells>(
    rows: &[SettleRow],
    act: &Act,
    rule: Option<u8>,
    done: &mut [RowSettled],
    cells: &mut C,
    now: Time,
) {
    for (row, done) in rows.iter().zip(done) {
        let moved = blocks::act(row.key, act, cells, now);
        note(done, moved && !act.shadow, Origin::Ban, rule);
    }
}

/// What a row shows when all is done.
fn show<C: Cells>(row: &SettleRow, done: &mut RowSettled, cells: &mut C, now: Time) {
    let meter = Meter::read(&row.limit, row.key, row.family, cells, now);
    let block = blocks::standing(row.key, row.shadow, cells, now);
    done.blocked_until = block.map(|block| block.until);
    done.free = row.limit.capacity().map(|_| meter.free(cells));
}

fn act(row: &SettleRow, origin: Origin) -> Act {
    let penalty = row.penalty.unwrap_or(Penalty::fixed(crate::time::Span::ZERO));
    Act { penalty, origin, shadow: row.shadow, note: Note::default() }
}

fn note(done: &mut RowSettled, changed: bool, origin: Origin, rule: Option<u8>) {
    if changed {
        (done.started, done.rule) = (Some(origin), rule);
    }
}

/// Charges or refunds the difference; returns what was charged beyond the held amount.
fn apply<C: Cells>(
    row: &SettleRow,
    meter: &mut Meter<'_>,
    cells: &mut C,
    done: &mut RowSettled,
) -> i64 {
    if let Limit::Inflight(_) = row.limit {
        meter.give_back(cells, row.lease);
        return 0;
    }
    if let Limit::Unlimited = row.limit {
        return 0;
    }
    let free = meter.free(cells);
    match row.price {
        Price::Drain => meter.charge(cells, free.max(0), 0),
        Price::Units(real) if real < row.held => -meter.refund(cells, row.at, row.held - real),
        Price::Units(real) => {
            let extra = real - row.held;
            if !meter.shared {
                cross(row, extra, free, cells, meter.now, done);
            }
            let payable = if owes(row) { extra } else { extra.min(free.max(0)) };
            meter.charge(cells, payable, 0)
        }
    }
}

fn owes(row: &SettleRow) -> bool {
    row.debt && !planted(Bug::DebtClamped)
}

/// A settle that takes more than was free is an excess like any other. Not for a shared cell: what
/// others have used there is no evidence against this key.
fn cross<C: Cells>(
    row: &SettleRow,
    extra: i64,
    free: i64,
    cells: &mut C,
    now: Time,
    done: &mut RowSettled,
) {
    let crosses = extra > 0 && extra > free && !planted(Bug::CrossingStartsNothing);
    if crosses && row.penalty.is_some() {
        let started = blocks::act(row.key, &act(row, Origin::Excess), cells, now);
        note(done, started, Origin::Excess, None);
    }
}

/// Counts a strike against one key; says whether it bans.
fn strike<C: Cells>(row: &SettleRow, ban: &BanRow, cells: &mut C, now: Time) -> bool {
    if ban.after.is_some() && is_blocked(row, cells, now) {
        return false;
    }
    struck_out(row, ban, cells, now)
}

fn is_blocked<C: Pool<Block>>(row: &SettleRow, cells: &mut C, now: Time) -> bool {
    blocks::standing(row.key, row.shadow, cells, now).is_some()
}

/// Adds a strike and returns whether the rule's number of strikes is reached; then the strikes are
/// removed. If the store has no room for the strike, it is not counted and no ban starts.
fn struck_out<C: Cells>(row: &SettleRow, ban: &BanRow, cells: &mut C, now: Time) -> bool {
    let Some(after) = ban.after else { return true };
    let key = strikes_key(row.key, ban.rule);
    let windows = [WindowTerms { limit: after.amount, span: after.per }];
    let count = |log: &mut Log| {
        log.prune(&windows, now);
        log.charge(&windows, now, 1);
        log.free(&windows) <= 0
    };
    let out = cells.edit(key, now, count).unwrap_or_else(|| {
        let mut log = Log::new(&windows);
        let out = count(&mut log);
        cells.put(key, log, now) && out
    });
    if out {
        Pool::<Log>::remove(cells, key, now);
    }
    out
}

/// Counts the outcome in one key's ratio and returns whether the ratio is too high; then its
/// counts are removed. If the store has no room for them, the outcome is not counted and no ban
/// starts.
fn exceeds<C: Cells>(row: &SettleRow, watch: &WatchRow, cells: &mut C, now: Time) -> bool {
    if is_blocked(row, cells, now) {
        return false;
    }
    let count = |cell: &mut Watch| {
        cell.count(watch.per, now, watch.in_part);
        cell.totals()
    };
    let totals = cells.edit(row.key, now, count).or_else(|| {
        let mut cell = Watch::new(watch.per, now);
        let totals = count(&mut cell);
        cells.put(row.key, cell, now).then_some(totals)
    });
    let Some((part, whole)) = totals else { return false };
    let exceeded = whole >= watch.min && watch.above.exceeded_by(part, whole);
    if exceeded {
        Pool::<Watch>::remove(cells, row.key, now);
    }
    exceeded
}
