//! Planning a credit: a late event finds its check by reference and gives back to exactly the
//! buckets it charged.
//!
//! Must not credit another subject's check, nor one that earned nothing.

use std::fmt;

use crate::batch::{self, CreditRow, Recalled};
use crate::catalog::Catalog;
use crate::digest::Key;
use crate::limit::Limit;
use crate::plan::Scope;
use crate::policy::{Credit, Policy, PolicyId};
use crate::refusal::Refusal;
use crate::select::Selector;
use crate::subject::Subject;
use crate::ticket::{Body, TicketRow};
use crate::time::Time;

/// Why a credit was not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCredited {
    /// No such reference, or it is forgotten.
    Unknown,
    /// The check was another subject's.
    OtherSubject,
    /// This event was applied before.
    Duplicate,
    /// The check has no outcome yet.
    NotSettled,
    /// Nothing in the check earns anything for this event and outcome.
    NotCreditable,
}

/// A credit's batch, with the policy of each row.
#[derive(Clone, Debug)]
pub struct CreditPlan {
    /// What the store is asked.
    pub batch: batch::Credit,
    /// The policy of each row.
    pub policies: Vec<PolicyId>,
}

/// A row of the check whose policy gives credit for the event.
struct Creditable<'a> {
    id: PolicyId,
    row: &'a TicketRow,
    rule: &'a Credit,
    limit: &'a Limit,
}

/// Writes the batch of a credit, or says why there is none.
pub fn credit(
    selector: &Selector<'_>,
    scope: &Scope<'_>,
    reference: Key,
    event: &str,
    subject: &Subject<'_>,
    recalled: &Recalled,
) -> Result<Result<CreditPlan, NotCredited>, Refusal> {
    let Some(body) = Body::from_bytes(&recalled.ticket) else {
        return Ok(Err(NotCredited::Unknown));
    };
    let unlisted = body.unlisted.then_some(&*body.gate);
    let scope = Scope { unlisted, ..*scope };
    let rows = creditable(selector.catalog, &body, &recalled.instants, event);
    for found in &rows {
        if !owns(selector, &scope, found.id, found.row, subject)? {
            return Ok(Err(NotCredited::OtherSubject));
        }
    }
    Ok(earned(&scope, rows, reference, event, recalled))
}

fn earned(
    scope: &Scope<'_>,
    rows: Vec<Creditable<'_>>,
    reference: Key,
    event: &str,
    recalled: &Recalled,
) -> Result<CreditPlan, NotCredited> {
    if recalled.credited.iter().any(|known| **known == *event) {
        return Err(NotCredited::Duplicate);
    }
    let Some(settled) = recalled.settled else { return Err(NotCredited::NotSettled) };
    let status = (settled != 0).then_some(settled);
    let earns =
        |found: &&Creditable<'_>| found.rule.on.as_ref().is_none_or(|on| on.contains(status));
    let mut plan = CreditPlan {
        batch: batch::Credit { reference, event: event.into(), rows: Vec::new() },
        policies: Vec::new(),
    };
    for found in rows.iter().filter(earns) {
        if let Limit::Bucket(terms) = found.limit {
            let key = scope.current(&found.row.policy, found.row.key);
            let row = CreditRow { key, terms: *terms, amount: found.rule.amount };
            plan.batch.rows.push(row);
            plan.policies.push(found.id);
        }
    }
    if plan.policies.is_empty() { Err(NotCredited::NotCreditable) } else { Ok(plan) }
}

/// Whether the subject gives the key that a row of the ticket was charged under.
pub fn owns(
    selector: &Selector<'_>,
    scope: &Scope<'_>,
    id: PolicyId,
    row: &TicketRow,
    subject: &Subject<'_>,
) -> Result<bool, Refusal> {
    let policy: &Policy = selector.catalog.policy(id);
    let keys = selector.parts_of(id, subject)?;
    Ok(keys.iter().any(|parts| scope.lasting(&policy.name, parts) == row.key))
}

fn creditable<'a>(
    catalog: &'a Catalog,
    body: &'a Body,
    instants: &[Option<Time>],
    event: &str,
) -> Vec<Creditable<'a>> {
    let charged = body.rows.iter().zip(instants).filter(|(_, instant)| instant.is_some());
    let rows = charged.filter_map(|(row, _)| {
        let (id, policy) = catalog.find(&row.policy)?;
        let terms = policy.terms_of(row.tier)?;
        let rule = terms.credits.iter().find(|rule| &*rule.event == event)?;
        Some(Creditable { id, row, rule, limit: &terms.limit })
    });
    rows.collect()
}

impl NotCredited {
    /// The word used on every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::OtherSubject => "other_subject",
            Self::Duplicate => "duplicate",
            Self::NotSettled => "not_settled",
            Self::NotCreditable => "not_creditable",
        }
    }
}

impl fmt::Display for NotCredited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
