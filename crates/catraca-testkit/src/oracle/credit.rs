//! Section 6: a late event that gives tokens back, once.
//!
//! It must answer the first reason that holds, in the page's order, and never lift a block.

use std::rc::Rc;

use super::answer::{Credited, Refusal};
use super::catalog::{Algorithm, Catalog, Credit};
use super::select::{InForce, Subject, keys};
use super::ticket::Held;
use super::{Micros, World};

impl World {
    /// Applies a late event to the buckets of the check that owns the `ref`.
    ///
    /// A subject without the attributes of a creditable row's key is refused, like any call that
    /// names a key.
    pub fn credit(
        &mut self,
        name: &str,
        event: &str,
        subject: &Subject,
        now: Micros,
    ) -> Result<Credited, Refusal> {
        let known = self.references.get(name).filter(|owner| now < owner.until).cloned();
        let Some(owner) = known else { return Ok(Credited::Unknown) };
        let ticket = self.tickets[owner.ticket].clone();
        let catalog = Rc::clone(&self.catalog);
        let creditable = creditable(&catalog, &ticket.rows, event);
        for (held, terms, _) in &creditable {
            if !owns(held, terms, subject)? {
                return Ok(Credited::OtherSubject);
            }
        }
        if owner.applied.iter().any(|applied| applied == event) {
            return Ok(Credited::Duplicate);
        }
        if ticket.settled.is_none() {
            return Ok(Credited::NotSettled);
        }
        let earned: Vec<_> = creditable
            .into_iter()
            .filter(|(_, _, credit)| {
                ticket.status.is_some_and(|status| credit.on.contains(&status))
            })
            .collect();
        if earned.is_empty() {
            return Ok(Credited::NotCreditable);
        }
        let mut taken = Vec::new();
        for (held, terms, credit) in earned {
            taken.push((held.policy.clone(), self.give(held, &terms, credit.amount, now)));
        }
        if let Some(owner) = self.references.get_mut(name) {
            owner.applied.push(event.to_owned());
        }
        Ok(Credited::Applied(taken))
    }

    /// Gives `amount` to one bucket; says how much of it fitted.
    fn give(&mut self, held: &Held, terms: &InForce, amount: i64, now: Micros) -> i64 {
        let Algorithm::Bucket { size, count, period } = *terms.algorithm else { return 0 };
        let terms = terms.bucket(size, count, period);
        self.cell_mut(&held.policy, &held.key).bucket.give(terms, amount, now)
    }
}

/// The buckets of a ticket that give credit for an event.
fn creditable<'a>(
    catalog: &'a Catalog,
    rows: &'a [Held],
    event: &str,
) -> Vec<(&'a Held, InForce<'a>, &'a Credit)> {
    let of = |held: &'a Held| {
        let terms = held.terms(catalog.policy(&held.policy)?);
        let bucket = matches!(terms.algorithm, Algorithm::Bucket { .. });
        let credit = terms.credits.iter().find(|credit| credit.event == event)?;
        bucket.then_some((held, terms, credit))
    };
    rows.iter().filter_map(of).collect()
}

/// Whether the subject gives the key of that row.
fn owns(held: &Held, terms: &InForce, subject: &Subject) -> Result<bool, Refusal> {
    let keys = keys(terms.policy, subject, held.gate.as_deref());
    if keys.is_empty() {
        return Err(Refusal::MissingAttribute);
    }
    Ok(keys.iter().any(|(_, key)| *key == held.key))
}
