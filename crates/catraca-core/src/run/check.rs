//! The check: judge every row, then charge all or none, then start the blocks that are due.
//!
//! Must not charge anything when an enforcing row does not fit.

use smallvec::SmallVec;

use super::blocks;
use super::meter::Meter;
use crate::batch::{Check, CheckReply, CheckRow, Remember, RowReply, Standing, Verdict};
use crate::cell::block::{Act, Note, Origin};
use crate::cell::{Block, Cells, Pool, Reference};
use crate::limit::Limit;
use crate::museum::{Bug, planted};
use crate::time::Time;

/// A row that has been judged.
struct Judged<'a> {
    row: &'a CheckRow,
    meter: Meter<'a>,
    verdict: Verdict,
    charged: i64,
    started: bool,
}

/// Decides, and unless it is a peek, charges and blocks.
pub fn run<C: Cells>(check: &Check, cells: &mut C, now: Time) -> CheckReply {
    let rows = check.rows.iter().map(|row| judge(row, cells, now));
    let mut rows: SmallVec<[Judged<'_>; 4]> = rows.collect();
    let passed = !check.veto && rows.iter().all(Judged::fits);
    if !check.peek {
        rows.iter_mut().for_each(|judged| judged.act(passed, cells));
    }
    let rows = rows.iter().map(|judged| judged.reply(cells)).collect();
    let mut reply = CheckReply { now, passed, remembered: false, rows };
    if let Some(what) = check.remember.as_deref().filter(|_| passed && !check.peek) {
        reply.remembered = keep(what, &reply.rows, cells, now);
    }
    reply
}

#[inline]
fn decides(row: &CheckRow) -> bool {
    !row.shadow || planted(Bug::ShadowDenies)
}

#[inline]
fn judge<'a, C: Cells>(row: &'a CheckRow, cells: &mut C, now: Time) -> Judged<'a> {
    let meter = Meter::read(&row.limit, row.key, row.family, cells, now);
    let verdict = verdict(row, &meter, cells, now);
    Judged { row, meter, verdict, charged: 0, started: false }
}

#[inline]
fn verdict<C: Cells>(row: &CheckRow, meter: &Meter<'_>, cells: &mut C, now: Time) -> Verdict {
    if blocks::standing(row.key, row.shadow, cells, now).is_some() {
        return Verdict::Blocked;
    }
    let need = need(row);
    if row.limit.capacity().is_some_and(|capacity| need > capacity) {
        return Verdict::TooCostly;
    }
    if meter.free(cells) < need { Verdict::OverLimit } else { Verdict::Fits }
}

/// The units that must be free: at least one, whatever is held.
#[inline]
pub(super) fn need(row: &CheckRow) -> i64 {
    match row.limit {
        Limit::Inflight(_) | Limit::Unlimited => 1,
        _ => row.held.max(1),
    }
}

impl Judged<'_> {
    /// Whether this row lets the gate pass.
    #[inline]
    fn fits(&self) -> bool {
        self.verdict == Verdict::Fits || !decides(self.row)
    }

    #[inline]
    fn act<C: Cells>(&mut self, passed: bool, cells: &mut C) {
        match self.verdict {
            Verdict::Fits if passed || planted(Bug::DenialConsumes) => {
                self.charged = self.meter.charge(cells, self.row.held, self.row.lease);
            }
            Verdict::OverLimit => self.exceed(cells),
            Verdict::Blocked if planted(Bug::BlockExtendsOnAttempt) => self.extend(cells),
            _ => {}
        }
    }

    fn exceed<C: Cells>(&mut self, cells: &mut C) {
        if self.row.count_denied {
            self.meter.count_denied(cells, self.row.held);
        }
        // The units in a shared cell are mostly those of other keys: no evidence against this one.
        if self.meter.shared {
            return;
        }
        if let Some(penalty) = self.row.penalty {
            let (origin, shadow) = (Origin::Excess, self.row.shadow);
            let act = Act { penalty, origin, shadow, note: Note::default() };
            self.started = blocks::act(self.row.key, &act, cells, self.meter.now);
        }
    }

    fn extend<C: Pool<Block>>(&self, cells: &mut C) {
        let length = self.row.penalty.map(|penalty| penalty.first).unwrap_or_default();
        if let Some(block) = cells.get(self.row.key, self.meter.now) {
            block.until = block.until.max(self.meter.now.after(length));
        }
    }

    #[inline]
    fn reply<C: Cells>(&self, cells: &mut C) -> RowReply {
        let now = self.meter.now;
        let figures = self.meter.figures(cells, need(self.row));
        let block = blocks::standing(self.row.key, self.row.shadow, cells, now);
        let block = block.map(|block| Box::new(standing(block, self.started)));
        let ends = block.as_ref().map_or(Time::ZERO, |block| block.until);
        RowReply {
            verdict: self.verdict,
            at: now,
            charged: self.charged,
            limit: figures.limit,
            free: figures.free,
            fits_at: self.waits().then(|| figures.fits_at.unwrap_or(Time::FOREVER).max(ends)),
            full_at: figures.full_at.max(ends),
            block,
            started: self.started,
            shared: self.meter.shared,
        }
    }

    fn waits(&self) -> bool {
        self.verdict != Verdict::Fits
    }
}

fn standing(block: &Block, changed: bool) -> Standing {
    Standing { until: block.until, origin: block.origin, note: block.note.clone(), changed }
}

/// Keeps the reference unless another check owns it.
fn keep<C: Pool<Reference>>(what: &Remember, rows: &[RowReply], cells: &mut C, now: Time) -> bool {
    if cells.get(what.key, now).is_some() {
        return false;
    }
    let reference = Reference {
        expires: now.after(what.span),
        owner: what.owner,
        instants: rows.iter().map(instant_of_charge).collect(),
        ticket: what.ticket.clone(),
        settled: None,
        credited: Vec::new(),
    };
    cells.put(what.key, reference, now)
}

/// A row that did not fit was not charged, and so has no instant to settle.
fn instant_of_charge(row: &RowReply) -> Option<Time> {
    (row.verdict == Verdict::Fits).then_some(row.at)
}
