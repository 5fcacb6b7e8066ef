//! Plans a settle: turns a ticket and an outcome into one batch.
//!
//! Prices are those of the active catalog, for the tier in the ticket. Ban conditions are evaluated
//! here, once per policy, so that stores see only the resulting blocks.

use smallvec::SmallVec;

use crate::batch::{self, BanRow, ReferenceUpdate, SettleRow, WatchRow};
use crate::cell::block::{BlockNote, BlockProposal, Origin};
use crate::condition::{ConditionEvaluator, ConditionResult};
use crate::facts::NamespaceFacts;
use crate::outcome::{BodySize, Outcome};
use crate::plan::{KeyScope, lease_id};
use crate::policy::{BanRule, Mode, Policy, PolicyId, Terms};
use crate::price::{BodyCost, Cost, Price};
use crate::refusal::Refusal;
use crate::request::{validate_cost, validate_status};
use crate::select::Selector;
use crate::ticket::{Ticket, TicketRow};
use crate::time::{Span, Time};

/// The batch of a settle, with what is needed to interpret its reply.
#[derive(Clone, Debug)]
pub struct SettlePlan {
    /// The batch for the store.
    pub batch: batch::SettleBatch,
    /// For each row of the batch: the policy, and the index of the row in the ticket.
    pub rows: Vec<(PolicyId, usize)>,
    /// How many conditions could not be evaluated: a missing field, values of different types, or
    /// too much work.
    pub failed_conditions: SmallVec<[(PolicyId, u32); 1]>,
    /// Whether a condition or a cost reads the body, but the body was too large to be read.
    pub body_truncated: bool,
    /// Whether a ban rule or a cost reads the body and got none, because the body is not JSON.
    pub body_invalid: bool,
}

/// Plans the batch of a settle. `in_storm` returns whether a ban storm puts the ban rules of a
/// policy in shadow mode for this settle. It is asked only if the settle may start a ban, once for
/// each row.
pub fn plan_settle(
    selector: &Selector<'_>,
    scope: &KeyScope<'_>,
    ticket: &Ticket,
    outcome: &Outcome,
    mut in_storm: impl FnMut(PolicyId) -> bool,
) -> Result<SettlePlan, Refusal> {
    outcome.cost.map_or(Ok(()), validate_cost)?;
    outcome.status.map_or(Ok(()), validate_status)?;
    let first = ticket.body.rows.first().ok_or(Refusal::BadTicket)?;
    let mark = scope.marker_key(ticket.body.id, first.key);
    let update = |key| Box::new(ReferenceUpdate { key, owner: mark, status: outcome.status });
    let reference = ticket.body.reference.map(update);
    let batch =
        batch::SettleBatch { marker: mark, expires: ticket.expires, rows: Vec::new(), reference };
    let mut plan = SettlePlan {
        batch,
        rows: Vec::new(),
        failed_conditions: SmallVec::new(),
        body_truncated: false,
        body_invalid: false,
    };
    let mut rules = BanRules::new(selector, ticket, outcome);
    let mut reads_body = false;
    for (index, row) in ticket.body.rows.iter().enumerate() {
        // A row without an instant was not charged; a policy can have been removed from the
        // catalog.
        let at = ticket.instants.get(index).copied().flatten();
        if let (Some(at), Some((id, policy))) = (at, selector.catalog.find(&row.policy)) {
            // A policy must enforce both at the check and now to start a real block.
            let shadow = row.shadow || selector.mode(id) != Mode::Enforce;
            // The tier of the ticket was removed, and the policy has limits only in its tiers.
            let Some(terms) = policy.terms_of(row.tier) else { continue };
            let matching_bans = rules.matching(id, policy);
            let may_ban = !matching_bans.is_empty() || is_watched(policy, outcome);
            let storm = may_ban && !shadow && in_storm(id);
            let facts = selector.facts;
            let context = SettleContext {
                scope,
                facts,
                ticket,
                row,
                policy,
                outcome,
                matching_bans,
                shadow,
                storm,
            };
            // Fits in `u8`: a ticket has at most 2,048 bytes, and the key of each row has 16.
            plan.batch.rows.push(context.settle_row(index as u8, terms, at));
            reads_body |= matches!(terms.cost, Cost::Body(_));
            plan.rows.push((id, index));
        }
    }
    plan.failed_conditions = rules.failed;
    let is_over_limit = outcome.body_size == BodySize::OverLimit;
    plan.body_truncated = rules.evaluator.body_truncated() || (reads_body && is_over_limit);
    plan.body_invalid = rules.evaluator.body_invalid() || (reads_body && outcome.body_invalid);
    Ok(plan)
}

/// Whether the policy counts this outcome in its watched ratio.
fn is_watched(policy: &Policy, outcome: &Outcome) -> bool {
    policy.watch.as_ref().is_some_and(|watch| watch.of.contains(outcome.status))
}

/// Evaluates ban rules. They do not depend on the row, so each policy is evaluated once.
struct BanRules<'a> {
    evaluator: ConditionEvaluator<'a>,
    /// The policies that were evaluated, with the indexes of their matching rules.
    evaluated: Vec<(PolicyId, SmallVec<[u8; 4]>)>,
    /// How many conditions of each policy could not be evaluated.
    failed: SmallVec<[(PolicyId, u32); 1]>,
}

impl<'a> BanRules<'a> {
    fn new(selector: &Selector<'_>, ticket: &'a Ticket, outcome: &'a Outcome) -> Self {
        let body_bytes_max = selector.catalog.settle.body_bytes_max;
        let evaluator = ConditionEvaluator::new(outcome, &ticket.body.attributes, body_bytes_max);
        Self { evaluator, evaluated: Vec::new(), failed: SmallVec::new() }
    }

    /// The indexes of the rules of a policy whose condition is true.
    fn matching(&mut self, id: PolicyId, policy: &Policy) -> &[u8] {
        let known = self.evaluated.iter().position(|(evaluated, _)| *evaluated == id);
        let index = known.unwrap_or_else(|| {
            let matching = self.evaluate(id, policy);
            self.evaluated.push((id, matching));
            self.evaluated.len() - 1
        });
        &self.evaluated[index].1
    }

    fn evaluate(&mut self, id: PolicyId, policy: &Policy) -> SmallVec<[u8; 4]> {
        let mut matching = SmallVec::new();
        let mut failed = 0;
        // The catalog admits at most 16 rules per policy.
        for (rule, ban) in (0_u8..).zip(&policy.bans) {
            match self.evaluator.evaluate(&ban.when) {
                ConditionResult::True => matching.push(rule),
                ConditionResult::False => {}
                // A condition that cannot be evaluated counts as false, and is reported.
                ConditionResult::Failed => failed += 1,
            }
        }
        if failed > 0 {
            self.failed.push((id, failed));
        }
        matching
    }
}

/// One row of a ticket, with everything that its settle depends on.
struct SettleContext<'a> {
    scope: &'a KeyScope<'a>,
    facts: NamespaceFacts<'a>,
    ticket: &'a Ticket,
    row: &'a TicketRow,
    policy: &'a Policy,
    outcome: &'a Outcome,
    /// The indexes of the ban rules whose condition is true.
    matching_bans: &'a [u8],
    /// Whether the policy did not enforce at the check, or does not enforce now.
    shadow: bool,
    /// Whether a ban storm has put the ban rules in shadow mode.
    storm: bool,
}

impl SettleContext<'_> {
    /// The row of the batch. `index` is the index of the row in the ticket.
    fn settle_row(&self, index: u8, terms: &Terms, at: Time) -> SettleRow {
        let price = self.price(terms);
        SettleRow {
            ticket_index: index,
            key: self.scope.current_key(&self.row.policy, self.row.key),
            tier_counter: self.row.tier_counter(),
            shared: self.row.shared_buckets(self.policy, &terms.limit, self.facts),
            family: self.scope.family(self.policy),
            limit: terms.limit.clone(),
            held: self.row.held,
            at,
            price,
            debt: self.policy.debt,
            penalty: terms.block,
            upstream: self.upstream(price),
            shadow: self.shadow,
            lease: lease_id(self.ticket.body.id),
            on_full: self.policy.on_failure,
            bans: self.bans(),
            watch: self.watch(),
        }
    }

    fn price(&self, terms: &Terms) -> Price {
        // A policy with an integer cost keeps the held amount, even if the integer has changed
        // since the check.
        match &terms.cost {
            Cost::Request | Cost::Units(_) => Price::Units(self.row.held),
            Cost::Body(body) => terms.cost.settled_price(
                self.row.held,
                self.outcome.status,
                self.weighted_units(body),
            ),
            cost => cost.settled_price(self.row.held, self.outcome.status, self.outcome.cost),
        }
    }

    /// The units of the outcome, weighted by the attribute in the ticket.
    fn weighted_units(&self, cost: &BodyCost) -> Option<i64> {
        let value = cost.weights.as_ref().and_then(|weights| {
            let mut attributes = self.ticket.body.attributes.iter();
            attributes.find(|(name, _)| **name == *weights.by)
        });
        cost.price(self.outcome, value.map(|(_, value)| value.as_str()))
    }

    /// The length of the block that the upstream asks for: its `Retry-After`, but only for an
    /// outcome that drains the quota. `retry_after_secs` caps it at 24 hours.
    fn upstream(&self, price: Price) -> Option<Span> {
        let seconds = self.outcome.retry_after_secs().filter(|_| price == Price::Drain)?;
        Some(Span::from_secs(seconds))
    }

    fn bans(&self) -> SmallVec<[BanRow; 1]> {
        let rows = self.matching_bans.iter().filter_map(|rule| {
            let ban = self.policy.bans.get(usize::from(*rule))?;
            Some(self.ban(*rule, ban))
        });
        rows.collect()
    }

    fn ban(&self, rule: u8, ban: &BanRule) -> BanRow {
        let note = BlockNote {
            reason: Some(ban.reason.clone()),
            status: ban.status,
            message: ban.message.clone(),
        };
        let shadow = self.shadow || self.storm;
        let act = BlockProposal::new(ban.penalty, Origin::Ban, shadow, note);
        BanRow { rule, after: ban.after, proposal: act }
    }

    fn watch(&self) -> Option<Box<WatchRow>> {
        let watch = self.policy.watch.as_ref()?;
        let status = self.outcome.status;
        let note =
            BlockNote { reason: Some("watched ratio exceeded".into()), ..BlockNote::default() };
        let shadow = self.shadow || self.storm;
        let act = BlockProposal::new(watch.ban, Origin::Ban, shadow, note);
        watch.of.contains(status).then(|| {
            let in_part = watch.share.contains(status);
            Box::new(WatchRow {
                in_part,
                per: watch.per,
                above: watch.above,
                min: watch.min,
                proposal: act,
            })
        })
    }
}
