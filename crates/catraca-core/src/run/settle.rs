//! The settle: a reservation becomes its real cost, once; then bans and watched ratios are judged.
//!
//! Must not apply anything twice, nor anything after the ticket's time.

use super::blocks::{self, strikes_key};
use super::meter::Meter;
use crate::batch::{BanRow, RowSettled, Settle, SettleReply, SettleRow, WatchRow};
use crate::cell::block::{Act, Note, Origin};
use crate::cell::{Block, Cells, Log, Mark, Pool, Reference, Watch};
use crate::limit::{Limit, Penalty, WindowTerms};
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
    let rows: Vec<RowSettled> = settle.rows.iter().map(|row| settle_row(row, cells, now)).collect();
    cells.edit(settle.mark, now, |mark: &mut Mark| mark.rows = rows.clone());
    tell_reference(settle, cells, now);
    SettleReply::Settled { now, again: false, rows }
}

fn tell_reference<C: Pool<Reference>>(settle: &Settle, cells: &mut C, now: Time) {
    if let Some((key, status)) = settle.reference
        && let Some(reference) = cells.get(key, now)
    {
        reference.settled = Some(status.unwrap_or(0));
    }
}

fn settle_row<C: Cells>(row: &SettleRow, cells: &mut C, now: Time) -> RowSettled {
    let mut meter = Meter::read(&row.limit, row.key, row.family, cells, now);
    let now = meter.now;
    let mut done = RowSettled { charged: row.held, ..RowSettled::default() };
    done.charged += apply(row, &mut meter, cells, &mut done);
    if let Some(span) = row.upstream {
        let act = Act { penalty: Penalty::fixed(span), ..act(row, Origin::Upstream) };
        note(&mut done, blocks::act(row.key, &act, cells, now), Origin::Upstream, None);
    }
    for ban in &row.bans {
        strike(row, ban, cells, now, &mut done);
    }
    if let Some(watch) = &row.watch {
        watch_ratio(row, watch, cells, now, &mut done);
    }
    done.free = row.limit.capacity().map(|_| meter.free(cells));
    done.blocked_until = blocks::standing(row.key, row.shadow, cells, now).map(|block| block.until);
    done
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
            cross(row, extra, free, cells, meter.now, done);
            let payable = if owes(row) { extra } else { extra.min(free.max(0)) };
            meter.charge(cells, payable, 0)
        }
    }
}

fn owes(row: &SettleRow) -> bool {
    row.debt && !planted(Bug::DebtClamped)
}

/// A settle that takes more than was free is an excess like any other.
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

fn strike<C: Cells>(
    row: &SettleRow,
    ban: &BanRow,
    cells: &mut C,
    now: Time,
    done: &mut RowSettled,
) {
    if ban.after.is_some() && is_blocked(row, cells, now) {
        return;
    }
    if struck_out(row, ban, cells, now) {
        let started = blocks::act(row.key, &ban.act, cells, now);
        note(done, started, Origin::Ban, Some(ban.rule));
    }
}

fn is_blocked<C: Pool<Block>>(row: &SettleRow, cells: &mut C, now: Time) -> bool {
    blocks::standing(row.key, row.shadow, cells, now).is_some()
}

/// Adds a strike and says whether it was the last one; then the strikes are spent.
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
        cells.put(key, log, now);
        out
    });
    if out {
        Pool::<Log>::remove(cells, key, now);
    }
    out
}

fn watch_ratio<C: Cells>(
    row: &SettleRow,
    watch: &WatchRow,
    cells: &mut C,
    now: Time,
    done: &mut RowSettled,
) {
    if is_blocked(row, cells, now) {
        return;
    }
    let count = |cell: &mut Watch| {
        cell.count(watch.per, now, watch.in_part);
        cell.totals()
    };
    let (part, whole) = cells.edit(row.key, now, count).unwrap_or_else(|| {
        let mut cell = Watch::new(watch.per, now);
        let totals = count(&mut cell);
        cells.put(row.key, cell, now);
        totals
    });
    if whole >= watch.min && watch.above.exceeded_by(part, whole) {
        Pool::<Watch>::remove(cells, row.key, now);
        note(done, blocks::act(row.key, &watch.act, cells, now), Origin::Ban, None);
    }
}
