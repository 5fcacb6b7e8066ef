//! Section 1 and 2: one check, row by row, and the numbers each row shows.
//!
//! It must follow the page's order to the letter: judge all rows, charge or not, punish excess,
//! then read the numbers.

use std::rc::Rc;

use super::answer::{Decision, Reason, Refusal, Row, to_ms};
use super::block::{self, Act, Origin};
use super::catalog::{Algorithm, Cost, Mode};
use super::cell::Cell;
use super::decide;
use super::select::{Ask, InForce, Line, known, select};
use super::{FOREVER, Micros, World};

impl World {
    /// Decides and charges.
    pub fn check(&mut self, ask: &Ask, now: Micros) -> Result<Decision, Refusal> {
        let catalog = Rc::clone(&self.catalog);
        known(&catalog, &ask.gate)?;
        if let Some(decision) = decide::listed(&catalog, ask, now) {
            return Ok(decision);
        }
        let lines = select(&catalog, ask)?;
        self.touch(&lines, now);
        let reasons: Vec<Reason> =
            lines.iter().map(|line| self.judge(line, ask.cost, now)).collect();
        let passes = passes(&lines, &reasons);
        let ticket = passes.then(|| self.admit(&lines, &reasons, ask, now));
        for (line, _) in
            lines.iter().zip(&reasons).filter(|(_, reason)| **reason == Reason::OverLimit)
        {
            self.punish(line, ask.cost, now);
        }
        let row = |(line, reason): (&Line, &Reason)| {
            let charged =
                if passes && *reason == Reason::Ok { line.terms.held(ask.cost) } else { 0 };
            self.row(line, *reason, charged, ask.cost, now)
        };
        let rows: Vec<Row> = lines.iter().zip(&reasons).map(row).collect();
        Ok(decide::conclude(rows, ticket.filter(|&number| self.tickets[number].useful)))
    }

    /// Answers what a check would, and changes nothing that could be noticed under the same terms.
    pub fn peek(&mut self, ask: &Ask, now: Micros) -> Result<Decision, Refusal> {
        let catalog = Rc::clone(&self.catalog);
        known(&catalog, &ask.gate)?;
        if let Some(decision) = decide::listed(&catalog, ask, now) {
            return Ok(decision);
        }
        let lines = select(&catalog, ask)?;
        self.touch(&lines, now);
        let row = |line: &Line| self.row(line, self.judge(line, ask.cost, now), 0, ask.cost, now);
        Ok(decide::conclude(lines.iter().map(row).collect(), None))
    }

    fn touch(&mut self, lines: &[Line], now: Micros) {
        for line in lines {
            if let Some(key) = &line.key {
                self.cell_mut(&line.terms.policy.name, key).touch(&line.terms, now);
            }
        }
    }

    /// Blocked, too costly, over the limit, or fits: in that order.
    fn judge(&self, line: &Line, asked: Option<i64>, now: Micros) -> Reason {
        let Some(cell) = self.state(line) else { return Reason::Missing };
        if cell.standing(&line.terms, now).is_some() {
            Reason::Blocked
        } else if too_costly(line, cell, asked, now) {
            Reason::TooCostly
        } else if cell.free(&line.terms, now).is_some_and(|free| free < need(line, asked)) {
            Reason::OverLimit
        } else {
            Reason::Ok
        }
    }

    /// Charges every row that fits, and writes the ticket.
    fn admit(&mut self, lines: &[Line], reasons: &[Reason], ask: &Ask, now: Micros) -> usize {
        let fitting: Vec<&Line> = lines
            .iter()
            .zip(reasons)
            .filter(|(_, reason)| **reason == Reason::Ok)
            .map(|(line, _)| line)
            .collect();
        let ticket = self.issue(lines, &fitting, ask, now);
        for line in fitting {
            let held = line.terms.held(ask.cost);
            let Some(key) = &line.key else { continue };
            let cell = self.cell_mut(&line.terms.policy.name, key);
            cell.charge(&line.terms, held, now);
            if let Algorithm::Inflight(_) = line.terms.algorithm {
                cell.leases.enter(ticket, now + line.terms.policy.hold);
            }
        }
        ticket
    }

    /// What a row that is over its limit does: its own block, and the count of the denial.
    fn punish(&mut self, line: &Line, asked: Option<i64>, now: Micros) {
        let Some(key) = &line.key else { return };
        let (terms, held) = (line.terms, line.terms.held(asked));
        let cell = self.cell_mut(&terms.policy.name, key);
        if let Some(length) = terms.block {
            let act = Act { origin: Origin::Excess, reason: "", length, shadow: terms.shadow };
            block::act(&mut cell.block, &act, now);
        }
        if terms.policy.count_denied {
            cell.count_denied(&terms, held, now);
        }
    }

    /// The numbers of a row, from the state as it is now.
    fn row(
        &self,
        line: &Line,
        reason: Reason,
        charged: i64,
        asked: Option<i64>,
        now: Micros,
    ) -> Row {
        let Some(cell) = self.state(line) else { return missing(line) };
        let block = cell.standing(&line.terms, now).map(|block| block.until);
        // The one with least free, first listed on a tie.
        let tightest = cell.quotas(&line.terms, now).into_iter().min_by_key(|&(_, free)| free);
        let never = reason == Reason::Ok || too_costly(line, cell, asked, now);
        let ready =
            if never { FOREVER } else { cell.ready_at(&line.terms, need(line, asked), now) };
        let retry_at = finite(ready.max(block.unwrap_or(now)));
        let reset_at = finite(cell.full_at(&line.terms, now).max(block.unwrap_or(now)));
        Row {
            policy: line.terms.policy.name.clone(),
            attribute: line.attribute.clone(),
            allowed: reason == Reason::Ok,
            reason,
            limit: tightest.map(|(limit, _)| limit),
            remaining: tightest.map(|(_, free)| if block.is_some() { 0 } else { free.max(0) }),
            balance: balance(&line.terms, cell, now),
            retry_at,
            retry_ms: retry_at.map(|at| to_ms(at - now)),
            reset_at,
            reset_ms: reset_at.map(|at| to_ms(at - now)),
            blocked_until: block.and_then(finite),
            endless: block == Some(FOREVER),
            charged,
            mode: line.terms.policy.mode,
        }
    }

    /// The state of a line; untouched if nothing is known.
    fn state(&self, line: &Line) -> Option<&Cell> {
        Some(self.cell(&line.terms.policy.name, line.key.as_ref()?))
    }
}

/// Every enforcing row fits.
fn passes(lines: &[Line], reasons: &[Reason]) -> bool {
    let fits = |(line, reason): (&Line, &Reason)| line.terms.shadow || *reason == Reason::Ok;
    lines.iter().zip(reasons).all(fits)
}

/// `need = max(1, held)`.
fn need(line: &Line, asked: Option<i64>) -> i64 {
    line.terms.held(asked).max(1)
}

/// `need > capacity`, the smallest limit; in flight and without limits nothing is too costly.
fn too_costly(line: &Line, cell: &Cell, asked: Option<i64>, now: Micros) -> bool {
    let unbounded = matches!(line.terms.algorithm, Algorithm::None | Algorithm::Inflight(_));
    let capacity = cell.quotas(&line.terms, now).into_iter().map(|(limit, _)| limit).min();
    !unbounded && capacity.is_some_and(|capacity| need(line, asked) > capacity)
}

/// The row of a policy that denies because an attribute is missing: no numbers.
fn missing(line: &Line) -> Row {
    Row {
        policy: line.terms.policy.name.clone(),
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
        endless: false,
        charged: 0,
        mode: line.terms.policy.mode,
    }
}

/// The signed figure of a bucket; other rows have none.
fn balance(terms: &InForce, cell: &Cell, now: Micros) -> Option<i64> {
    let bucket = matches!(terms.algorithm, Algorithm::Bucket { .. });
    cell.free(terms, now).filter(|_| bucket)
}

pub(super) fn finite(instant: Micros) -> Option<Micros> {
    (instant != FOREVER).then_some(instant)
}

/// Whether something of a line can still happen after the check.
pub(super) fn useful(line: &Line) -> bool {
    let terms = &line.terms;
    let priced = matches!(terms.cost, Cost::Table(_) | Cost::Reported);
    let leased = matches!(terms.algorithm, Algorithm::Inflight(_));
    let judged = !terms.policy.bans.is_empty() || terms.policy.watch.is_some();
    line.key.is_some() && (priced || leased || judged || !terms.credits.is_empty())
}

impl Mode {
    /// Whether rows of this mode decide.
    pub fn enforces(self) -> bool {
        self == Mode::Enforce
    }
}
