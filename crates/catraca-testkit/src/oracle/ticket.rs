//! The ticket of an admitted check, and the `ref` that it may own.
//!
//! A ticket holds no terms: a settle looks them up again in the catalog that is active then.

use super::answer::SettleAnswer;
use super::catalog::{Catalog, HOLD, REMEMBER, Tier, When};
use super::check::useful;
use super::select::{ActiveTerms, CheckRequest, Key, SelectedRow, active_terms};
use super::{Micros, Oracle};

/// The ticket of an admitted check.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// The instant of the check.
    pub at: Micros,
    /// The first instant at which it can no longer be settled.
    pub expiry: Micros,
    /// Rows that were charged, and rows without a limit that fit.
    pub rows: Vec<HeldRow>,
    /// Whether the caller received it: only if a settle or a credit can change something.
    pub useful: bool,
    /// The result of the first settle, which later ones repeat.
    pub settled: Option<SettleAnswer>,
    /// The status it was settled with.
    pub status: Option<i64>,
}

/// One row of a ticket.
#[derive(Clone, Debug)]
pub struct HeldRow {
    /// The policy.
    pub policy: String,
    /// The condition of its tier.
    pub tier: Option<When>,
    /// The key.
    pub key: Key,
    /// The key of the counter that was charged.
    pub counter: Key,
    /// The attribute of an `each` policy.
    pub attribute: Option<String>,
    /// The gate that is part of the key.
    pub gate: Option<String>,
    /// Units held.
    pub units: i64,
    /// Whether it was a shadow row; a block that its settle starts is then a shadow block.
    pub shadow: bool,
}

/// The owner of a `ref`.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The number of its ticket.
    pub ticket: usize,
    /// The instant at which it expires.
    pub until: Micros,
    /// The events that were credited.
    pub applied: Vec<String>,
}

impl Oracle {
    /// Issues the ticket of an admitted check, which owns its `ref` if the `ref` is free. A check
    /// that no settle or credit can change owns none.
    pub(super) fn issue(
        &mut self,
        selected: &[SelectedRow],
        fitting: &[&SelectedRow],
        request: &CheckRequest,
        now: Micros,
    ) -> usize {
        let useful = selected.iter().any(useful);
        // The longest of all rows, fitting or not: whether a shadow row fits must not change the
        // lifetime of the ticket.
        let keyed = selected.iter().filter(|row| row.key.is_some());
        let hold = keyed.map(|row| row.terms.policy.hold).max().unwrap_or(HOLD);
        let remember =
            selected.iter().map(|row| row.terms.policy.remember).max().unwrap_or(REMEMBER);
        let number = self.tickets.len();
        self.tickets.push(Ticket {
            at: now,
            expiry: now + hold,
            rows: fitting.iter().filter_map(|row| held_row(row, request.cost)).collect(),
            useful,
            settled: None,
            status: None,
        });
        if let Some(name) = request.reference.as_ref().filter(|_| useful) {
            self.own(name, number, now, now + remember);
        }
        number
    }

    fn own(&mut self, name: &str, ticket: usize, now: Micros, until: Micros) {
        if self.references.get(name).is_none_or(|owner| owner.until <= now) {
            let owner = Reference { ticket, until, applied: Vec::new() };
            self.references.insert(name.to_owned(), owner);
        }
    }
}

impl HeldRow {
    /// The terms of its tier in the given catalog; a reload may have moved the tier or removed the
    /// policy. Absent too if it removed the tier, and only other tiers have limits.
    pub fn terms<'c>(&self, catalog: &'c Catalog) -> Option<ActiveTerms<'c>> {
        let policy = catalog.policy(&self.policy)?;
        let is_it = |tier: &Tier| self.tier.as_ref() == Some(&tier.when);
        let tier = policy.tiers.iter().position(is_it);
        if tier.is_none() && policy.limits_only_tiers() {
            return None;
        }
        let terms = active_terms(policy, tier);
        Some(terms.with_sharing(catalog, Some(&self.key), Some(&self.counter)))
    }
}

fn held_row(row: &SelectedRow, requested: Option<i64>) -> Option<HeldRow> {
    let policy = row.terms.policy;
    let tier = row.tier.map(|number| &policy.tiers[number]);
    Some(HeldRow {
        policy: policy.name.clone(),
        tier: tier.map(|tier| tier.when.clone()),
        key: row.key.clone()?,
        counter: row.counter.clone()?,
        attribute: row.attribute.clone(),
        gate: row.gate.clone(),
        units: row.terms.held_units(requested),
        shadow: row.terms.shadow,
    })
}
