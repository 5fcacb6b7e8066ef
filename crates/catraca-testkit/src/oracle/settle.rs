//! Section 5: the real price of an admitted check, and the bans its outcome earns.
//!
//! It must price with the catalog in force and touch only rows the ticket names.

use std::rc::Rc;

use super::answer::{Paid, Settled};
use super::block::{self, Act, Origin};
use super::catalog::{Algorithm, Ban, Cost, Length, Price, Watch};
use super::cell::{Cell, Watched};
use super::check::finite;
use super::outcome::Outcome;
use super::select::InForce;
use super::ticket::{Held, Ticket};
use super::{Micros, World};

impl World {
    /// Turns what a ticket holds into the real price.
    pub fn settle(&mut self, number: usize, outcome: &Outcome, now: Micros) -> Settled {
        let Some(ticket) = self.tickets.get(number).cloned() else { return Settled::Unknown };
        if now >= ticket.expiry {
            return Settled::Expired;
        }
        if let Some(first) = ticket.settled {
            return first;
        }
        let catalog = Rc::clone(&self.catalog);
        let known = |held: &Held| {
            let terms = held.terms(catalog.policy(&held.policy)?);
            Some(InForce { shadow: terms.shadow || held.shadow, ..terms })
        };
        let rows: Vec<(&Held, InForce)> =
            ticket.rows.iter().filter_map(|held| Some((held, known(held)?))).collect();
        let mut charged = Vec::new();
        for (held, terms) in &rows {
            charged.push(self.settle_row(held, terms, number, outcome, now));
        }
        for (place, (held, terms)) in rows.iter().enumerate() {
            // Once per policy, whatever the number of its keys.
            if !rows[..place].iter().any(|(earlier, _)| earlier.policy == held.policy) {
                self.judge_outcome(&ticket, terms, outcome, now);
            }
        }
        let paid = rows
            .iter()
            .zip(charged)
            .map(|((held, terms), charged)| self.paid(held, terms, charged, now));
        let result = Settled::Applied(paid.collect());
        self.tickets[number].settled = Some(result.clone());
        self.tickets[number].status = outcome.status;
        result
    }

    /// What a row shows when all is done.
    fn paid(&self, held: &Held, terms: &InForce, charged: i64, now: Micros) -> Paid {
        let cell = self.cell(&held.policy, &held.key);
        let counted = !matches!(terms.algorithm, Algorithm::Inflight(_));
        Paid {
            policy: held.policy.clone(),
            charged,
            balance: cell.free(terms, now).filter(|_| counted),
            blocked_until: cell.standing(terms, now).and_then(|block| finite(block.until)),
        }
    }

    /// The amounts of one row; says what it paid in the end.
    fn settle_row(
        &mut self,
        held: &Held,
        terms: &InForce,
        number: usize,
        outcome: &Outcome,
        now: Micros,
    ) -> i64 {
        let instant = self.tickets[number].at;
        let cell = self.cell_mut(&held.policy, &held.key);
        cell.touch(terms, now);
        match terms.algorithm {
            Algorithm::None => return held.units,
            Algorithm::Inflight(_) => {
                cell.leases.leave(number);
                return held.units;
            }
            _ => {}
        }
        match price(terms.cost, held.units, outcome) {
            Price::Units(real) => settle_units(cell, terms, held.units, real, instant, now),
            Price::Drain => held.units + settle_drain(cell, terms, outcome, now),
        }
    }

    /// The ban rules in file order, then the watch. A ban goes to every key of the policy the
    /// ticket holds.
    fn judge_outcome(&mut self, ticket: &Ticket, terms: &InForce, outcome: &Outcome, now: Micros) {
        let rows: Vec<&Held> =
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

    fn ban(&mut self, rows: &[&Held], terms: &InForce, length: &Length, reason: &str, now: Micros) {
        for held in rows {
            let act = Act { origin: Origin::Ban, reason, length, shadow: terms.shadow };
            block::act(&mut self.cell_mut(&held.policy, &held.key).block, &act, now);
        }
    }
}

/// The price of an outcome: exact status, else class, else `default`, else 1.
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

/// `delta = real - held`: a refund or an extra charge; says what the row paid.
fn settle_units(
    cell: &mut Cell,
    terms: &InForce,
    held: i64,
    real: i64,
    instant: Micros,
    now: Micros,
) -> i64 {
    let delta = real - held;
    let free = cell.free(terms, now).unwrap_or(0);
    if delta < 0 {
        return held - cell.refund(terms, -delta, instant, now);
    }
    let most = if terms.policy.debt { free.saturating_sub(terms.floor()) } else { free };
    let extra = delta.min(most.max(0));
    cell.charge(terms, extra, now);
    if delta > 0 && delta > free {
        start(cell, terms, Origin::Excess, terms.block, now);
    }
    held + extra
}

/// Takes all that is free, and blocks for as long as the upstream said; says what was taken.
fn settle_drain(cell: &mut Cell, terms: &InForce, outcome: &Outcome, now: Micros) -> i64 {
    let taken = cell.drain(terms, now);
    if let Some(seconds) = outcome.retry_after {
        // An upstream shuts a caller out for a day at most.
        let length = Length::Fixed(seconds.min(86_400) * 1_000_000);
        start(cell, terms, Origin::Upstream, Some(&length), now);
    }
    taken
}

fn start(cell: &mut Cell, terms: &InForce, origin: Origin, length: Option<&Length>, now: Micros) {
    if let Some(length) = length {
        let act = Act { origin, reason: "", length, shadow: terms.shadow };
        block::act(&mut cell.block, &act, now);
    }
}

/// One offence against a rule; says whether it bans.
fn strike(cell: &mut Cell, terms: &InForce, number: usize, rule: &Ban, now: Micros) -> bool {
    let Some((enough, span)) = rule.after else { return true };
    if cell.standing(terms, now).is_some() {
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

/// One outcome seen by the watch; says whether it bans.
fn observe(
    cell: &mut Cell,
    terms: &InForce,
    watch: &Watch,
    outcome: &Outcome,
    now: Micros,
) -> bool {
    let Some(status) = outcome.status.filter(|status| watch.of.contains(status)) else {
        return false;
    };
    if cell.standing(terms, now).is_some() {
        return false;
    }
    let length = watch.per / 24;
    let slice = now / length;
    // Slices of another length cannot be added up with these: the count starts again.
    cell.watched.retain(|seen| seen.length == length);
    cell.watched.push(Watched { slice, length, part: watch.share.contains(&status) });
    let recent = || cell.watched.iter().filter(|seen| slice - seen.slice < 24);
    let whole = recent().count() as i64;
    let part = recent().filter(|seen| seen.part).count() as i64;
    let bans = whole >= watch.min && part * 100 > whole * watch.above;
    if bans {
        cell.watched.clear();
    }
    bans
}
