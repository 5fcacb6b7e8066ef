//! Plans a credit: a later event gives units back to the buckets that its check charged.
//!
//! The check is creditable by its reference. The subject must give the same keys as at the check.

use std::fmt;

use crate::batch::{self, CreditRow, RowCounter, StoredReference};
use crate::catalog::Catalog;
use crate::digest::Key;
use crate::facts::NamespaceFacts;
use crate::limit::Limit;
use crate::plan::KeyScope;
use crate::policy::{CreditRule, Policy, PolicyId};
use crate::refusal::Refusal;
use crate::select::Selector;
use crate::subject::Subject;
use crate::ticket::{TicketBody, TicketRow};
use crate::time::Time;

/// Why a credit is not applied. The first reason that holds is reported, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CreditRejection {
    /// The reference is unknown or has expired.
    Unknown,
    /// The subject gives another key in a creditable row.
    OtherSubject,
    /// This event was credited before.
    Duplicate,
    /// The check has not been settled.
    NotSettled,
    /// No charged bucket gives credit for this event and outcome.
    NotCreditable,
}

impl CreditRejection {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Unknown,
        Self::OtherSubject,
        Self::Duplicate,
        Self::NotSettled,
        Self::NotCreditable,
    ];
}

// A new variant does not compile here, so that it gets a place in the list.
const _: () = match CreditRejection::ALL[CreditRejection::ALL.len() - 1] {
    CreditRejection::Unknown
    | CreditRejection::OtherSubject
    | CreditRejection::Duplicate
    | CreditRejection::NotSettled
    | CreditRejection::NotCreditable => (),
};

/// The batch of a credit.
#[derive(Clone, Debug)]
pub struct CreditPlan {
    /// The batch for the store.
    pub batch: batch::CreditBatch,
    /// The policy of each row.
    pub policies: Vec<PolicyId>,
}

/// A charged row of the check whose policy gives credit for the event.
struct Creditable<'a> {
    id: PolicyId,
    row: &'a TicketRow,
    policy: &'a Policy,
    rule: &'a CreditRule,
    limit: &'a Limit,
}

/// Plans the batch of a credit. The inner error says why no credit is due.
pub fn plan_credit(
    selector: &Selector<'_>,
    scope: &KeyScope<'_>,
    reference: Key,
    event: &str,
    subject: &Subject<'_>,
    stored: &StoredReference,
) -> Result<Result<CreditPlan, CreditRejection>, Refusal> {
    // A reference that cannot be decoded is as good as none: there is no check to credit.
    let Some(body) = TicketBody::from_bytes(&stored.ticket) else {
        return Ok(Err(CreditRejection::Unknown));
    };
    // Keys must be computed with the gate of the check.
    let unlisted = body.unlisted.then_some(&*body.gate);
    let scope = KeyScope { unlisted, ..*scope };
    let rows = creditable_rows(selector.catalog, &body, &stored.instants, event);
    for creditable in &rows {
        if !owns(selector, &scope, creditable.id, creditable.row, subject)? {
            return Ok(Err(CreditRejection::OtherSubject));
        }
    }
    Ok(credit_batch(selector.facts, &scope, rows, reference, event, stored))
}

/// Plans the credit once the subject is known to be the same as at the check.
fn credit_batch(
    facts: NamespaceFacts<'_>,
    scope: &KeyScope<'_>,
    rows: Vec<Creditable<'_>>,
    reference: Key,
    event: &str,
    stored: &StoredReference,
) -> Result<CreditPlan, CreditRejection> {
    if stored.credited.iter().any(|known| **known == *event) {
        return Err(CreditRejection::Duplicate);
    }
    let Some(settled) = stored.settled else { return Err(CreditRejection::NotSettled) };
    // References store zero for an outcome without a status.
    let status = (settled != 0).then_some(settled);
    // A rule without `on` gives credit for every status.
    let earns = |creditable: &&Creditable<'_>| {
        creditable.rule.on.as_ref().is_none_or(|on| on.contains(status))
    };
    let mut plan = CreditPlan {
        batch: batch::CreditBatch { reference, event: event.into(), rows: Vec::new() },
        policies: Vec::new(),
    };
    for creditable in rows.iter().filter(earns) {
        if let Limit::Bucket(terms) = creditable.limit {
            let key = scope.current_key(&creditable.row.policy, creditable.row.key);
            let counter = RowCounter::new(key, creditable.row.tier_counter(), 0);
            let policy = creditable.policy;
            plan.batch.rows.push(CreditRow {
                key: counter.key,
                terms: *terms,
                shared: creditable.row.shared_buckets(policy, creditable.limit, facts),
                amount: creditable.rule.amount,
            });
            plan.policies.push(creditable.id);
        }
    }
    if plan.policies.is_empty() { Err(CreditRejection::NotCreditable) } else { Ok(plan) }
}

/// Whether the subject has the key under which a row of the ticket was charged.
pub fn owns(
    selector: &Selector<'_>,
    scope: &KeyScope<'_>,
    id: PolicyId,
    row: &TicketRow,
    subject: &Subject<'_>,
) -> Result<bool, Refusal> {
    let policy: &Policy = selector.catalog.policy(id);
    let keys = selector.key_parts_of(id, subject)?;
    // `each` gives several keys. Base keys are compared, since a reset does not change them.
    Ok(keys.iter().any(|parts| scope.base_key(&policy.name, parts) == row.key))
}

/// The charged rows of a check whose policy gives credit for the event.
fn creditable_rows<'a>(
    catalog: &'a Catalog,
    body: &'a TicketBody,
    instants: &[Option<Time>],
    event: &str,
) -> Vec<Creditable<'a>> {
    let charged = body.rows.iter().zip(instants).filter(|(_, instant)| instant.is_some());
    let rows = charged.filter_map(|(row, _)| {
        let (id, policy) = catalog.find(&row.policy)?;
        let terms = policy.terms_of(row.tier)?;
        let rule = terms.credits.iter().find(|rule| &*rule.event == event)?;
        Some(Creditable { id, row, policy, rule, limit: &terms.limit })
    });
    rows.collect()
}

impl CreditRejection {
    /// The name of the reason on every interface.
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

impl fmt::Display for CreditRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
