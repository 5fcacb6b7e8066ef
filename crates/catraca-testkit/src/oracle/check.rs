//! Sections 1 and 2: a check, row by row, and the figures of each row.
//!
//! The order is that of the page: evaluate all rows, charge all or none, start the blocks of
//! exceeded limits, then read the figures.

use std::rc::Rc;

use super::answer::{Decision, Reason, Refusal, Row, WindowRow, to_ms};
use super::block::{self, BlockAct, Origin};
use super::catalog::{Algorithm, Cost, Mode};
use super::cell::Cell;
use super::decide;
use super::ratio::Ratio;
use super::select::{ActiveTerms, CheckRequest, SelectedRow, require_gate, select};
use super::{FOREVER, Micros, Oracle};

impl Oracle {
    /// A check: decides and charges.
    pub fn check(&mut self, request: &CheckRequest, now: Micros) -> Result<Decision, Refusal> {
        let catalog = Rc::clone(&self.catalog);
        require_gate(&catalog, &request.gate)?;
        if let Some(decision) = decide::decide_by_list(&catalog, request, now) {
            return Ok(decision);
        }
        let selected = select(&catalog, request)?;
        self.touch(&selected, now);
        let reasons: Vec<Reason> =
            selected.iter().map(|row| self.evaluate(row, request.cost, now)).collect();
        let passes = passes(&selected, &reasons);
        let ticket = passes.then(|| self.admit(&selected, &reasons, request, now));
        for (row, _) in
            selected.iter().zip(&reasons).filter(|(_, reason)| **reason == Reason::OverLimit)
        {
            self.punish(row, request.cost, now);
        }
        let answer = |(row, reason): (&SelectedRow, &Reason)| {
            let charged = if passes && *reason == Reason::Ok {
                row.terms.held_units(request.cost)
            } else {
                0
            };
            self.answer_row(row, *reason, charged, request.cost, now)
        };
        let rows: Vec<Row> = selected.iter().zip(&reasons).map(answer).collect();
        Ok(decide::conclude(rows, ticket.filter(|&number| self.tickets[number].useful)))
    }

    /// The answer of a check, without charges or blocks; no state changes.
    pub fn peek(&mut self, request: &CheckRequest, now: Micros) -> Result<Decision, Refusal> {
        let catalog = Rc::clone(&self.catalog);
        require_gate(&catalog, &request.gate)?;
        if let Some(decision) = decide::decide_by_list(&catalog, request, now) {
            return Ok(decision);
        }
        let selected = select(&catalog, request)?;
        // Expired state is dropped for the answer, and put back.
        let before: Vec<Option<Cell>> =
            selected.iter().map(|row| self.counter(row).cloned()).collect();
        self.touch(&selected, now);
        let answer = |row: &SelectedRow| {
            self.answer_row(row, self.evaluate(row, request.cost, now), 0, request.cost, now)
        };
        let rows = selected.iter().map(answer).collect();
        for (row, cell) in selected.iter().zip(before) {
            if let Some((counter, cell)) = row.counter.as_ref().zip(cell) {
                *self.cell_mut(&row.terms.policy.name, counter) = cell;
            }
        }
        Ok(decide::conclude(rows, None))
    }

    fn touch(&mut self, selected: &[SelectedRow], now: Micros) {
        for row in selected {
            if let Some(counter) = &row.counter {
                self.cell_mut(&row.terms.policy.name, counter).touch(&row.terms, now);
            }
        }
    }

    /// Blocked, too costly, over the limit, or fits: in that order.
    fn evaluate(&self, row: &SelectedRow, requested: Option<i64>, now: Micros) -> Reason {
        let Some(cell) = self.state(row) else { return Reason::Missing };
        let Some(counter) = self.counter(row) else { return Reason::Missing };
        if cell.active_block(&row.terms, now).is_some() {
            Reason::Blocked
        } else if too_costly(row, counter, requested, now) {
            Reason::TooCostly
        } else if counter.free(&row.terms, now).is_some_and(|free| free < need(row, requested)) {
            Reason::OverLimit
        } else {
            Reason::Ok
        }
    }

    /// Charges every row that fits and issues the ticket.
    fn admit(
        &mut self,
        selected: &[SelectedRow],
        reasons: &[Reason],
        request: &CheckRequest,
        now: Micros,
    ) -> usize {
        let fitting: Vec<&SelectedRow> = selected
            .iter()
            .zip(reasons)
            .filter(|(_, reason)| **reason == Reason::Ok)
            .map(|(row, _)| row)
            .collect();
        let ticket = self.issue(selected, &fitting, request, now);
        for row in fitting {
            let held = row.terms.held_units(request.cost);
            let Some(counter) = &row.counter else { continue };
            let cell = self.cell_mut(&row.terms.policy.name, counter);
            cell.charge(&row.terms, held, now);
            if let Algorithm::Inflight(_) = row.terms.algorithm {
                cell.leases.enter(ticket, now + row.terms.policy.hold);
            }
        }
        ticket
    }

    /// Starts the block of a row that is over its limit, and counts the denial if the policy says
    /// so.
    fn punish(&mut self, row: &SelectedRow, requested: Option<i64>, now: Micros) {
        let Some((key, counter)) = row.key.as_ref().zip(row.counter.as_ref()) else { return };
        let terms = &row.terms;
        let held = terms.held_units(requested);
        let cell = self.cell_mut(&terms.policy.name, key);
        if let Some(length) = terms.block {
            let act = BlockAct { origin: Origin::Excess, reason: "", length, shadow: terms.shadow };
            block::act(&mut cell.block, &act, now);
        }
        if terms.policy.count_denied {
            self.cell_mut(&terms.policy.name, counter).count_denied(terms, held, now);
        }
    }

    /// The figures of a row, from the state after all charges and blocks of the check.
    fn answer_row(
        &self,
        row: &SelectedRow,
        reason: Reason,
        charged: i64,
        requested: Option<i64>,
        now: Micros,
    ) -> Row {
        let Some((state, cell)) = self.state(row).zip(self.counter(row)) else {
            return missing(row);
        };
        let active = state.active_block(&row.terms, now);
        let block = active.map(|block| block.until);
        let quotas = cell.quotas(&row.terms, now);
        let index = index_to_show(&quotas, need(row, requested));
        let tightest = index.map(|index| quotas[index]);
        // A row that fits, or never can, has no wait.
        let never = reason == Reason::Ok || too_costly(row, cell, requested, now);
        let ready =
            if never { FOREVER } else { cell.ready_at(&row.terms, need(row, requested), now) };
        let retry_at = finite(ready.max(block.unwrap_or(now)));
        let windows = windows(row, cell, need(row, requested), block, now);
        let reset_at = match index.and_then(|index| windows.get(index)) {
            Some(window) => window.reset_at,
            None => finite(cell.full_at(&row.terms, now).max(block.unwrap_or(now))),
        };
        Row {
            policy: row.terms.policy.name.clone(),
            attribute: row.attribute.clone(),
            allowed: reason == Reason::Ok,
            reason,
            limit: tightest.map(|(limit, _)| limit),
            // None is left during a block, even if the counter has units free.
            remaining: tightest.map(|(_, free)| if block.is_some() { 0 } else { free.max(0) }),
            balance: balance(&row.terms, cell, now),
            retry_at,
            retry_ms: retry_at.map(|at| to_ms(at - now)),
            reset_at,
            reset_ms: reset_at.map(|at| to_ms(at - now)),
            blocked_until: block.and_then(finite),
            // The last offence is numbered from 0, and a level counts offences.
            level: active.and_then(|block| block.level).map(|last| last + 1),
            endless: block == Some(FOREVER),
            charged,
            mode: row.terms.policy.mode,
            windows,
        }
    }

    /// The counter of a row; `None` if the row has no key.
    fn counter(&self, row: &SelectedRow) -> Option<&Cell> {
        Some(self.cell(&row.terms.policy.name, row.counter.as_ref()?))
    }

    /// The state of a row; `None` if the row has no key.
    fn state(&self, row: &SelectedRow) -> Option<&Cell> {
        Some(self.cell(&row.terms.policy.name, row.key.as_ref()?))
    }
}

/// Whether every enforcing row fits.
fn passes(selected: &[SelectedRow], reasons: &[Reason]) -> bool {
    let fits = |(row, reason): (&SelectedRow, &Reason)| row.terms.shadow || *reason == Reason::Ok;
    selected.iter().zip(reasons).all(fits)
}

/// `need = max(1, held)`.
fn need(row: &SelectedRow, requested: Option<i64>) -> i64 {
    row.terms.held_units(requested).max(1)
}

/// `need > capacity`, where the capacity is the smallest limit. Nothing is too costly in flight or
/// without a limit.
fn too_costly(row: &SelectedRow, cell: &Cell, requested: Option<i64>, now: Micros) -> bool {
    let unbounded = matches!(row.terms.algorithm, Algorithm::None | Algorithm::Inflight(_));
    let capacity = cell.quotas(&row.terms, now).into_iter().map(|(limit, _)| limit).min();
    !unbounded && capacity.is_some_and(|capacity| need(row, requested) > capacity)
}

/// The row of a policy that denies because an attribute is missing: it has no figures.
fn missing(row: &SelectedRow) -> Row {
    Row {
        policy: row.terms.policy.name.clone(),
        attribute: None,
        allowed: false,
        reason: Reason::Missing,
        limit: None,
        remaining: None,
        balance: None,
        retry_at: None,
        retry_ms: None,
        reset_at: None,
        reset_ms: None,
        blocked_until: None,
        level: None,
        endless: false,
        charged: 0,
        mode: row.terms.policy.mode,
        windows: Vec::new(),
    }
}

/// The index of the limit whose numbers a row shows: the one with the smallest share left, of those
/// that do not fit if there are some; the first on a tie.
fn index_to_show(quotas: &[(i64, i64)], need: i64) -> Option<usize> {
    let denies = |index: &usize| quotas[*index].1 < need;
    let all = 0..quotas.len();
    let any_denies = all.clone().any(|index| denies(&index));
    let candidates = all.filter(|index| !any_denies || denies(index));
    let share = |index: &usize| {
        let (limit, free) = quotas[*index];
        Ratio::new(i128::from(free.max(0)), i128::from(limit))
    };
    candidates.min_by_key(share)
}

/// The windows of a row that has several.
fn windows(
    row: &SelectedRow,
    cell: &Cell,
    need: i64,
    block: Option<Micros>,
    now: Micros,
) -> Vec<WindowRow> {
    let Algorithm::Window(windows) = row.terms.algorithm else { return Vec::new() };
    if windows.len() < 2 {
        return Vec::new();
    }
    let free = cell.window.free(windows, now);
    let window = |(index, &(limit, span)): (usize, &(i64, Micros))| {
        let full = cell.window.one_full_at(index, span, now);
        let missing = need - free[index].1;
        let ready = match missing {
            _ if need > limit => Some(FOREVER),
            1.. => Some(cell.window.one_ready_at(index, span, missing, now)),
            _ => None,
        };
        WindowRow {
            limit,
            span,
            remaining: if block.is_some() { 0 } else { free[index].1.max(0) },
            reset_at: finite(full.max(block.unwrap_or(now))),
            retry_at: ready.max(block).and_then(finite),
        }
    };
    windows.iter().enumerate().map(window).collect()
}

/// The signed balance of a bucket; other rows have none.
fn balance(terms: &ActiveTerms, cell: &Cell, now: Micros) -> Option<i64> {
    let bucket = matches!(terms.algorithm, Algorithm::Bucket { .. });
    cell.free(terms, now).filter(|_| bucket)
}

pub(super) fn finite(instant: Micros) -> Option<Micros> {
    (instant != FOREVER).then_some(instant)
}

/// Whether a settle or a credit can still change something for a row: the check then has a ticket.
pub(super) fn useful(row: &SelectedRow) -> bool {
    let terms = &row.terms;
    let priced = matches!(terms.cost, Cost::Table(_) | Cost::Reported);
    let leased = matches!(terms.algorithm, Algorithm::Inflight(_));
    let watched = !terms.policy.bans.is_empty() || terms.policy.watch.is_some();
    row.key.is_some() && (priced || leased || watched || !terms.credits.is_empty())
}

impl Mode {
    /// Whether rows of this mode can deny.
    pub fn enforces(self) -> bool {
        self == Mode::Enforce
    }
}
