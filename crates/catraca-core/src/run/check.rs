//! Applies a check: evaluates every row, charges all rows or none, then starts the blocks of rows
//! over their limit.

use smallvec::SmallVec;

use super::blocks;
use super::meter::Meter;
use super::peek_cells::PeekCells;
use crate::batch::{CheckBatch, CheckReply, CheckRow, NewReference, RowReply, RowVerdict};
use crate::cell::block::{BlockNote, BlockProposal, Origin};
use crate::cell::{CellStore, CellTable, Reference};
use crate::policy::OnFailure;
use crate::time::Time;

/// A row of the check with its counter and its verdict.
struct RowCheck<'a> {
    row: &'a CheckRow,
    meter: Meter<'a>,
    verdict: RowVerdict,
    charged: i64,
    block_started: bool,
}

/// Evaluates the check. Unless it is a peek, charges its rows and starts blocks.
pub fn run<C: CellStore>(check: &CheckBatch, cells: &mut C, now: Time) -> CheckReply {
    if check.peek {
        return evaluate(check, &mut PeekCells::new(cells), now);
    }
    evaluate(check, cells, now)
}

fn evaluate<C: CellStore>(check: &CheckBatch, cells: &mut C, now: Time) -> CheckReply {
    // Every row gets its verdict before any row is charged: if one enforcing row does not fit, no
    // row may be charged.
    let rows = check.rows.iter().map(|row| check_row(row, cells, now));
    // Up to four rows need no allocation.
    let mut rows: SmallVec<[RowCheck<'_>; 4]> = rows.collect();
    let passed = !check.already_denied && rows.iter().all(RowCheck::lets_pass);
    // Also for a check that did not pass: rows over their limit count the denial and start their
    // block, whether or not other rows fit.
    if !check.peek {
        rows.iter_mut().for_each(|row| row.apply(passed, cells));
    }
    // The figures of a reply are those after the charges and blocks of all rows.
    let rows = rows.iter().map(|row| row.reply(cells)).collect();
    let mut reply = CheckReply { now, passed, remembered: false, rows };
    // Only an admitted check owns its reference: a denied check has nothing to settle or credit.
    if let Some(reference) = check.new_reference.as_deref().filter(|_| passed && !check.peek) {
        reply.remembered = store_reference(reference, &reply.rows, cells, now);
    }
    reply
}

#[inline]
fn check_row<'a, C: CellStore>(row: &'a CheckRow, cells: &mut C, now: Time) -> RowCheck<'a> {
    // The counter is read even if the key is blocked, since the reply has the figures of every row.
    // The meter moves its own instant forward to the last write of the counter, because time never
    // runs backwards for a counter. Whether a block is active is judged at `now`.
    let meter = Meter::read(&row.limit, row.counter(), row.on_full, cells, now);
    let verdict = verdict(row, &meter, cells, now);
    RowCheck { row, meter, verdict, charged: 0, block_started: false }
}

#[inline]
fn verdict<C: CellStore>(
    row: &CheckRow,
    meter: &Meter<'_>,
    cells: &mut C,
    now: Time,
) -> RowVerdict {
    // The order of the verdicts is part of the contract (docs/semantics.md, 1): a blocked row is
    // reported as blocked even if its amount could never fit.
    if blocks::active_block(row.key, row.shadow, cells, now).is_some() {
        return RowVerdict::Blocked;
    }
    let need = row.limit.need(row.held);
    if row.limit.capacity().is_some_and(|capacity| need > capacity) {
        return RowVerdict::TooCostly;
    }
    if meter.is_overflow && row.on_full == OnFailure::Closed {
        return RowVerdict::Unavailable;
    }
    if meter.free(cells) < need { RowVerdict::OverLimit } else { RowVerdict::Fits }
}

impl RowCheck<'_> {
    /// Whether this row lets the gate pass. Shadow rows never deny.
    #[inline]
    fn lets_pass(&self) -> bool {
        self.verdict == RowVerdict::Fits || self.row.shadow
    }

    /// Charges a row that fits if the whole check passed, or handles an excess.
    #[inline]
    fn apply<C: CellStore>(&mut self, passed: bool, cells: &mut C) {
        match self.verdict {
            RowVerdict::Fits if passed => {
                self.charged = self.meter.charge(cells, self.row.held, self.row.lease);
            }
            // A row that is blocked or too costly changes nothing: attempts during a block do not
            // extend it.
            RowVerdict::OverLimit => self.on_over_limit(cells),
            _ => {}
        }
    }

    /// Counts the denial and starts the block of a row over its limit.
    fn on_over_limit<C: CellStore>(&mut self, cells: &mut C) {
        if self.row.count_denied {
            self.meter.count_denied(cells, self.row.held);
        }
        // A shared counter contains units of other keys, so it is no evidence that this key
        // exceeded its limit: the row denies, but starts no block.
        if self.meter.is_overflow {
            return;
        }
        if let Some(penalty) = self.row.penalty {
            let note = BlockNote::default();
            let proposal = BlockProposal::new(penalty, Origin::Excess, self.row.shadow, note);
            self.block_started =
                blocks::propose_block(self.row.key, &proposal, cells, self.meter.now);
        }
    }

    #[inline]
    fn reply<C: CellStore>(&self, cells: &mut C) -> RowReply {
        let now = self.meter.now;
        let is_waiting = !matches!(self.verdict, RowVerdict::Fits | RowVerdict::Unavailable);
        let figures = self.meter.figures(cells, self.row.limit.need(self.row.held));
        // Read again, since this check may have started a block. The verdict was judged at the
        // instant of the batch; all figures are those at the row's instant.
        let block = blocks::active_block(self.row.key, self.row.shadow, cells, now);
        let block = block.map(|block| Box::new(block.clone()));
        let block_end = block.as_ref().map_or(Time::ZERO, |block| block.until);
        RowReply {
            verdict: self.verdict,
            at: now,
            charged: self.charged,
            limit: figures.limit,
            free: figures.free,
            // `fits_at` is `None` if the amount can never fit. A block delays both instants, and is
            // part of the wait even if units are free before it ends. When memory will be free
            // again is unknown.
            fits_at: is_waiting.then(|| figures.fits_at.unwrap_or(Time::FOREVER).max(block_end)),
            full_at: figures.full_at.max(block_end),
            block,
            started: self.block_started,
            is_overflow: self.meter.is_overflow,
            windows: figures.windows,
        }
    }
}

/// Stores the reference, unless another check owns it. Returns whether it was stored: the pool of
/// references may be full.
fn store_reference<C: CellTable<Reference>>(
    new: &NewReference,
    rows: &[RowReply],
    cells: &mut C,
    now: Time,
) -> bool {
    if cells.get(new.key, now).is_some() {
        return false;
    }
    let reference = Reference {
        expires: now.after(new.span),
        owner: new.owner,
        instants: rows.iter().map(charge_instant).collect(),
        ticket: new.ticket.clone(),
        settled: None,
        credited: Vec::new(),
    };
    cells.put(new.key, reference, now)
}

/// A row that did not fit was not charged, so a settle has no charge to correct. A row that fits
/// has an instant even if it was charged nothing: ban-only rows are settled too.
fn charge_instant(row: &RowReply) -> Option<Time> {
    (row.verdict == RowVerdict::Fits).then_some(row.at)
}
