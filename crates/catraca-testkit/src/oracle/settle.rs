//! Section 5: the final price of an admitted check, and the bans that its outcome causes.
//!
//! Prices come from the catalog at the time of the settle; only the rows of the ticket change.

use std::rc::Rc;

use super::answer::{SettleAnswer, SettledRow};
use super::block::{self, BlockAct, Origin};
use super::catalog::{Algorithm, Ban, Cost, Length, Price, Watch};
use super::cell::{Cell, WatchedOutcome};
use super::check::finite;
use super::outcome::Outcome;
use super::select::ActiveTerms;
use super::ticket::{HeldRow, Ticket};
use super::{Micros, Oracle};

impl Oracle {
    /// Replaces the units that a ticket holds by the final price.
    pub fn settle(&mut self, number: usize, outcome: &Outcome, now: Micros) -> SettleAnswer {
        let Some(ticket) = self.tickets.get(number).cloned() else { return SettleAnswer::Unknown };
        // Before the test for a repetition: a late repetition is expired too.
        if now >= ticket.expiry {
            return SettleAnswer::Expired;
        }
        if let Some(first) = ticket.settled {
            return first;
        }
        let catalog = Rc::clone(&self.catalog);
        let known = |held: &HeldRow| {
            let terms = held.terms(&catalog)?;
            // A policy that was in shadow at the check stays so for the outcome of that check.
            Some(ActiveTerms { shadow: terms.shadow || held.shadow, ..terms })
        };
        let rows: Vec<(&HeldRow, ActiveTerms)> =
            ticket.rows.iter().filter_map(|held| Some((held, known(held)?))).collect();
        let mut charged = Vec::new();
        for (held, terms) in &rows {
            charged.push(self.settle_row(held, terms, number, outcome, now));
        }
        for (index, (held, terms)) in rows.iter().enumerate() {
            // Once per policy, however many of its keys the ticket holds.
            if !rows[..index].iter().any(|(earlier, _)| earlier.policy == held.policy) {
                self.judge_outcome(&ticket, terms, outcome, now);
            }
        }
        // After all rules, because their bans may have blocked rows that were settled before.
        let settled = rows
            .iter()
            .zip(charged)
            .map(|((held, terms), charged)| self.settled_row(held, terms, charged, now));
        let result = SettleAnswer::Applied(settled.collect());
        self.tickets[number].settled = Some(result.clone());
        self.tickets[number].status = outcome.status;
        result
    }

    /// The figures of a row after the whole settle.
    fn settled_row(
        &self,
        held: &HeldRow,
        terms: &ActiveTerms,
        charged: i64,
        now: Micros,
    ) -> SettledRow {
        let cell = self.cell(&held.policy, &held.key);
        let counter = self.cell(&held.policy, &held.counter);
        let counted = !matches!(terms.algorithm, Algorithm::Inflight(_));
        SettledRow {
            policy: held.policy.clone(),
            attribute: held.attribute.clone(),
            charged,
            balance: counter.free(terms, now).filter(|_| counted),
            blocked_until: cell.active_block(terms, now).and_then(|block| finite(block.until)),
        }
    }

    /// Applies the price to one row; returns the units charged in total.
    fn settle_row(
        &mut self,
        held: &HeldRow,
        terms: &ActiveTerms,
        number: usize,
        outcome: &Outcome,
        now: Micros,
    ) -> i64 {
        let instant = self.tickets[number].at;
        let cell = self.cell_mut(&held.policy, &held.counter);
        cell.touch(terms, now);
        match terms.algorithm {
            Algorithm::None => return held.units,
            Algorithm::Inflight(_) => {
                cell.leases.leave(number);
                return held.units;
            }
            _ => {}
        }
        let block: Option<(Origin, Length)>;
        let charged = match price(terms.cost, held.units, outcome) {
            Price::Units(real) => {
                let (charged, exceeds) = settle_units(cell, terms, held.units, real, instant, now);
                let length = terms.block.filter(|_| exceeds);
                block = length.map(|length| (Origin::Excess, length.clone()));
                charged
            }
            Price::Drain => {
                // An upstream may block a caller for at most a day.
                let length = |seconds: i64| Length::Fixed(seconds.min(86_400) * 1_000_000);
                block = outcome.retry_after.map(|wait| (Origin::Upstream, length(wait)));
                held.units + cell.drain(terms, now)
            }
        };
        if let Some((origin, length)) = block {
            let act = BlockAct { origin, reason: "", length: &length, shadow: terms.shadow };
            block::act(&mut self.cell_mut(&held.policy, &held.key).block, &act, now);
        }
        charged
    }

    /// Applies the ban rules in file order, then the watch. A ban blocks every key of the policy
    /// that the ticket holds.
    fn judge_outcome(
        &mut self,
        ticket: &Ticket,
        terms: &ActiveTerms,
        outcome: &Outcome,
        now: Micros,
    ) {
        let rows: Vec<&HeldRow> =
            ticket.rows.iter().filter(|held| held.policy == terms.policy.name).collect();
        for (number, rule) in terms.policy.bans.iter().enumerate() {
            let mut bans = false;
            for held in &rows {
                let cell = self.cell_mut(&held.policy, &held.key);
                bans |= rule.when.holds(outcome) && strike(cell, terms, number, rule, now);
            }
            if bans {
                self.ban(&rows, terms, &rule.length, &rule.reason, now);
            }
        }
        let Some(watch) = &terms.policy.watch else { return };
        let mut bans = false;
        for held in &rows {
            bans |= observe(self.cell_mut(&held.policy, &held.key), terms, watch, outcome, now);
        }
        if bans {
            self.ban(&rows, terms, &watch.length, "watch", now);
        }
    }

    fn ban(
        &mut self,
        rows: &[&HeldRow],
        terms: &ActiveTerms,
        length: &Length,
        reason: &str,
        now: Micros,
    ) {
        for held in rows {
            let act = BlockAct { origin: Origin::Ban, reason, length, shadow: terms.shadow };
            block::act(&mut self.cell_mut(&held.policy, &held.key).block, &act, now);
        }
    }
}

/// The price of an outcome: by its exact status, else its class, else `default`, else 1.
fn price(cost: &Cost, held: i64, outcome: &Outcome) -> Price {
    match cost {
        Cost::Asked | Cost::Always(_) => Price::Units(held),
        Cost::Reported => Price::Units(outcome.cost.unwrap_or(held)),
        Cost::Table(table) => {
            let of =
                |name: &str| table.iter().find(|(key, _)| key == name).map(|(_, price)| *price);
            let first = match outcome.status {
                Some(status) => {
                    of(&status.to_string()).or_else(|| of(&format!("{}xx", status / 100)))
                }
                None => of("none"),
            };
            first.or_else(|| of("default")).unwrap_or(Price::Units(1))
        }
    }
}

/// Applies `delta = real - held`, a refund or an extra charge; returns the units charged in total,
/// and whether the charge exceeds the limit.
fn settle_units(
    cell: &mut Cell,
    terms: &ActiveTerms,
    held: i64,
    real: i64,
    instant: Micros,
    now: Micros,
) -> (i64, bool) {
    let delta = real - held;
    let free = cell.free(terms, now).unwrap_or(0);
    if delta < 0 {
        return (held - cell.refund(terms, -delta, instant, now), false);
    }
    let most = if terms.policy.debt { free.saturating_sub(terms.floor()) } else { free };
    let extra = delta.min(most.max(0));
    cell.charge(terms, extra, now);
    // Needing more than is free is an excess even if debt covers it.
    (held + extra, delta > 0 && delta > free)
}

/// Counts one offence against a ban rule; returns whether it bans.
fn strike(cell: &mut Cell, terms: &ActiveTerms, number: usize, rule: &Ban, now: Micros) -> bool {
    let Some((enough, span)) = rule.after else { return true };
    // Strikes are not counted during a block.
    if cell.active_block(terms, now).is_some() {
        return false;
    }
    cell.strikes.resize_with(cell.strikes.len().max(number + 1), Vec::new);
    let strikes = &mut cell.strikes[number];
    strikes.push(now);
    let counting = strikes.iter().filter(|&&at| now - at < span).count() as i64;
    let bans = counting >= enough;
    if bans {
        strikes.clear();
    }
    bans
}

/// Counts one outcome in the watch; returns whether it bans.
fn observe(
    cell: &mut Cell,
    terms: &ActiveTerms,
    watch: &Watch,
    outcome: &Outcome,
    now: Micros,
) -> bool {
    let Some(status) = outcome.status.filter(|status| watch.of.contains(status)) else {
        return false;
    };
    if cell.active_block(terms, now).is_some() {
        return false;
    }
    // A watch counts whole slices of a 24th of its period.
    let length = watch.per / 24;
    let slice = now / length;
    // Slices of another length cannot be added to these, so the count starts again.
    cell.watched.retain(|outcome| outcome.length == length);
    cell.watched.push(WatchedOutcome { slice, length, part: watch.share.contains(&status) });
    let recent = || cell.watched.iter().filter(|outcome| slice - outcome.slice < 24);
    let whole = recent().count() as i64;
    let part = recent().filter(|outcome| outcome.part).count() as i64;
    let bans = whole >= watch.min && part * 100 > whole * watch.above;
    if bans {
        cell.watched.clear();
    }
    bans
}
