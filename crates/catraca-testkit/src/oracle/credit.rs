//! Section 6: credits, by which a late event returns tokens once.
//!
//! The order of the tests is that of the page: the first one that fails is the answer. A credit
//! never lifts a block.

use std::rc::Rc;

use super::answer::{CreditAnswer, Refusal};
use super::catalog::{Algorithm, Catalog, Credit};
use super::select::{ActiveTerms, Subject, keys};
use super::ticket::HeldRow;
use super::{Micros, Oracle};

impl Oracle {
    /// Applies a late event to the buckets of the check that owns the `ref`.
    ///
    /// Refuses a subject that lacks the attributes of a creditable row's key.
    pub fn credit(
        &mut self,
        name: &str,
        event: &str,
        subject: &Subject,
        now: Micros,
    ) -> Result<CreditAnswer, Refusal> {
        let known = self.references.get(name).filter(|owner| now < owner.until).cloned();
        let Some(owner) = known else { return Ok(CreditAnswer::Unknown) };
        let ticket = self.tickets[owner.ticket].clone();
        let catalog = Rc::clone(&self.catalog);
        let creditable = creditable(&catalog, &ticket.rows, event);
        for (held, terms, _) in &creditable {
            if !owns(held, terms, subject)? {
                return Ok(CreditAnswer::OtherSubject);
            }
        }
        if owner.applied.iter().any(|applied| applied == event) {
            return Ok(CreditAnswer::Duplicate);
        }
        if ticket.settled.is_none() {
            return Ok(CreditAnswer::NotSettled);
        }
        let earned: Vec<_> = creditable
            .into_iter()
            .filter(|(_, _, credit)| {
                ticket.status.is_some_and(|status| credit.on.contains(&status))
            })
            .collect();
        if earned.is_empty() {
            return Ok(CreditAnswer::NotCreditable);
        }
        let mut taken = Vec::new();
        for (held, terms, credit) in earned {
            taken.push((held.policy.clone(), self.give(held, &terms, credit.amount, now)));
        }
        if let Some(owner) = self.references.get_mut(name) {
            owner.applied.push(event.to_owned());
        }
        Ok(CreditAnswer::Applied(taken))
    }

    /// Returns `amount` tokens to one bucket; returns how many it gained.
    fn give(&mut self, held: &HeldRow, terms: &ActiveTerms, amount: i64, now: Micros) -> i64 {
        let Algorithm::Bucket { size, count, period } = *terms.algorithm else { return 0 };
        let kept = terms.kept_buckets();
        let terms = terms.bucket(size, count, period);
        self.cell_mut(&held.policy, &held.counter).bucket.give(terms, &kept, amount, now)
    }
}

/// The buckets of a ticket that give credit for an event.
fn creditable<'a>(
    catalog: &'a Catalog,
    rows: &'a [HeldRow],
    event: &str,
) -> Vec<(&'a HeldRow, ActiveTerms<'a>, &'a Credit)> {
    let of = |held: &'a HeldRow| {
        let terms = held.terms(catalog)?;
        let bucket = matches!(terms.algorithm, Algorithm::Bucket { .. });
        let credit = terms.credits.iter().find(|credit| credit.event == event)?;
        bucket.then_some((held, terms, credit))
    };
    rows.iter().filter_map(of).collect()
}

/// Whether the subject has the key of that row.
fn owns(held: &HeldRow, terms: &ActiveTerms, subject: &Subject) -> Result<bool, Refusal> {
    let keys = keys(terms.policy, subject, held.gate.as_deref());
    if keys.is_empty() {
        return Err(Refusal::MissingAttribute);
    }
    Ok(keys.iter().any(|(_, key)| *key == held.key))
}
