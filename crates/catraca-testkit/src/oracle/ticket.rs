//! What is remembered of an admitted check: its ticket, and the `ref` it may own.
//!
//! It must not hold anything that a reload could change: terms are looked up again at settle.

use super::answer::Settled;
use super::catalog::{HOLD, Policy, REMEMBER, Tier};
use super::check::useful;
use super::select::{Ask, InForce, Key, Line, in_force};
use super::{Micros, World};

/// Proof of an admitted check.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// Instant of the check.
    pub at: Micros,
    /// First instant at which it is too late.
    pub expiry: Micros,
    /// Rows that were charged, and rows without a limit that fit.
    pub rows: Vec<Held>,
    /// Whether the caller was given it.
    pub useful: bool,
    /// The first result.
    pub settled: Option<Settled>,
    /// The status it was settled with.
    pub status: Option<i64>,
}

/// One row of a ticket.
#[derive(Clone, Debug)]
pub struct Held {
    /// The policy.
    pub policy: String,
    /// Attribute and value of the tier it was judged by.
    pub tier: Option<(String, String)>,
    /// Who was counted.
    pub key: Key,
    /// The attribute of an `each` policy.
    pub attribute: Option<String>,
    /// The gate that is part of the key.
    pub gate: Option<String>,
    /// Units held.
    pub units: i64,
    /// Whether it was a shadow row; what it starts later is in shadow too.
    pub shadow: bool,
}

/// The owner of a `ref`.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Number of its ticket.
    pub ticket: usize,
    /// First instant at which it is forgotten.
    pub until: Micros,
    /// Events that were applied.
    pub applied: Vec<String>,
}

impl World {
    /// Writes the ticket of a check that passed, and lets it own its `ref` if nobody does.
    /// A check of which nothing can come later owns none.
    pub(super) fn issue(
        &mut self,
        lines: &[Line],
        fitting: &[&Line],
        ask: &Ask,
        now: Micros,
    ) -> usize {
        let useful = lines.iter().any(useful);
        // Of all rows of the check: what a shadow row finds must not change how long a ticket
        // lives.
        let keyed = lines.iter().filter(|line| line.key.is_some());
        let hold = keyed.map(|line| line.terms.policy.hold).max().unwrap_or(HOLD);
        let remember =
            lines.iter().map(|line| line.terms.policy.remember).max().unwrap_or(REMEMBER);
        let number = self.tickets.len();
        self.tickets.push(Ticket {
            at: now,
            expiry: now + hold,
            rows: fitting.iter().filter_map(|line| held(line, ask.cost)).collect(),
            useful,
            settled: None,
            status: None,
        });
        if let Some(name) = ask.reference.as_ref().filter(|_| useful) {
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

impl Held {
    /// The terms of its tier under another catalog, wherever the tier stands there.
    pub fn terms<'p>(&self, policy: &'p Policy) -> InForce<'p> {
        let is_it = |tier: &Tier| {
            self.tier
                .as_ref()
                .is_some_and(|(name, value)| *name == tier.attribute && *value == tier.value)
        };
        in_force(policy, policy.tiers.iter().position(is_it))
    }
}

fn held(line: &Line, asked: Option<i64>) -> Option<Held> {
    let policy = line.terms.policy;
    let tier = line.tier.map(|number| &policy.tiers[number]);
    Some(Held {
        policy: policy.name.clone(),
        tier: tier.map(|tier| (tier.attribute.clone(), tier.value.clone())),
        key: line.key.clone()?,
        attribute: line.attribute.clone(),
        gate: line.gate.clone(),
        units: line.terms.held(asked),
        shadow: line.terms.shadow,
    })
}
