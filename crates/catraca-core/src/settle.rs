//! Planning a settle: a ticket and an outcome become one batch.
//!
//! Prices with the catalog in force and the ticket's tier; evaluates conditions here, so that
//! stores see only acts. A policy's conditions are evaluated once, however many rows it has.
//! Must not touch state.

use smallvec::SmallVec;

use crate::batch::{self, BanRow, SettleRow, Told, WatchRow};
use crate::cell::block::{Act, Note, Origin};
use crate::condition::{Judge, Verdict};
use crate::outcome::Outcome;
use crate::plan::{Scope, lease_of};
use crate::policy::{Ban, Mode, Policy, PolicyId, Terms};
use crate::price::{Cost, Price};
use crate::refusal::Refusal;
use crate::request::{cost_in_bounds, status_in_bounds};
use crate::select::Selector;
use crate::ticket::{Ticket, TicketRow};
use crate::time::{Span, Time};

/// A settle's batch, and what is needed to read its reply.
#[derive(Clone, Debug)]
pub struct SettlePlan {
    /// What the store is asked.
    pub batch: batch::Settle,
    /// For each row of the batch: the policy, and the row's place in the ticket.
    pub rows: Vec<(PolicyId, usize)>,
    /// Conditions that read a missing field, compared unlike things, or would take too long.
    pub failed: u32,
    /// Whether a condition reads the body and did not see it because it is too large.
    pub body_truncated: bool,
}

/// Writes the batch of a settle. `storms` says which policies' bans are in shadow for a while.
pub fn settle(
    selector: &Selector<'_>,
    scope: &Scope<'_>,
    ticket: &Ticket,
    outcome: &Outcome,
    storms: impl Fn(PolicyId) -> bool,
) -> Result<SettlePlan, Refusal> {
    outcome.cost.map_or(Ok(()), cost_in_bounds)?;
    outcome.status.map_or(Ok(()), status_in_bounds)?;
    let first = ticket.body.rows.first().ok_or(Refusal::BadTicket)?;
    let mark = scope.mark(ticket.body.id, first.key);
    let told = |key| Box::new(Told { key, owner: mark, status: outcome.status });
    let reference = ticket.body.reference.map(told);
    let batch = batch::Settle { mark, expires: ticket.expires, rows: Vec::new(), reference };
    let mut plan = SettlePlan { batch, rows: Vec::new(), failed: 0, body_truncated: false };
    let mut rules = Rules::new(selector, ticket, outcome);
    for (place, row) in ticket.body.rows.iter().enumerate() {
        let at = ticket.instants.get(place).copied().flatten();
        if let (Some(at), Some((id, policy))) = (at, selector.catalog.find(&row.policy)) {
            let shadow = row.shadow || selector.mode(id) != Mode::Enforce;
            let storm = storms(id);
            let Some(terms) = policy.terms_of(row.tier) else { continue };
            let held = rules.held(id, policy);
            let judging = Judging { scope, ticket, row, policy, outcome, held, shadow, storm };
            plan.add(judging, terms, at, (id, place));
        }
    }
    plan.failed = rules.failed;
    plan.body_truncated = rules.judge.body_truncated();
    Ok(plan)
}

/// Which ban rules hold. They do not depend on the row, so each policy is judged once.
struct Rules<'a> {
    judge: Judge<'a>,
    judged: Vec<(PolicyId, SmallVec<[u8; 4]>)>,
    failed: u32,
}

impl<'a> Rules<'a> {
    fn new(selector: &Selector<'_>, ticket: &'a Ticket, outcome: &'a Outcome) -> Self {
        let body_bytes_max = selector.catalog.settle.body_bytes_max;
        let judge = Judge::new(outcome, &ticket.body.attributes, body_bytes_max);
        Self { judge, judged: Vec::new(), failed: 0 }
    }

    /// The places of a policy's rules that hold.
    fn held(&mut self, id: PolicyId, policy: &Policy) -> &[u8] {
        let known = self.judged.iter().position(|(judged, _)| *judged == id);
        let at = known.unwrap_or_else(|| {
            let held = self.judge(policy);
            self.judged.push((id, held));
            self.judged.len() - 1
        });
        &self.judged[at].1
    }

    fn judge(&mut self, policy: &Policy) -> SmallVec<[u8; 4]> {
        let mut held = SmallVec::new();
        for (rule, ban) in (0_u8..).zip(&policy.bans) {
            match self.judge.verdict(&ban.when) {
                Verdict::True => held.push(rule),
                Verdict::False => {}
                Verdict::Failed => self.failed += 1,
            }
        }
        held
    }
}

/// One row under judgement.
struct Judging<'a> {
    scope: &'a Scope<'a>,
    ticket: &'a Ticket,
    row: &'a TicketRow,
    policy: &'a Policy,
    outcome: &'a Outcome,
    /// The places of the policy's rules that hold.
    held: &'a [u8],
    /// Whether the policy did not enforce at the check, or does not now.
    shadow: bool,
    storm: bool,
}

impl SettlePlan {
    fn add(&mut self, judging: Judging<'_>, terms: &Terms, at: Time, place: (PolicyId, usize)) {
        let price = judging.price(terms);
        self.batch.rows.push(SettleRow {
            place: place.1 as u8,
            key: judging.scope.current(&judging.row.policy, judging.row.key),
            family: judging.scope.family(judging.policy),
            limit: terms.limit.clone(),
            held: judging.row.held,
            at,
            price,
            debt: judging.policy.debt,
            penalty: terms.block,
            upstream: judging.upstream(price),
            shadow: judging.shadow,
            lease: lease_of(judging.ticket.body.id),
            bans: judging.bans(),
            watch: judging.watch(),
        });
        self.rows.push(place);
    }
}

impl Judging<'_> {
    fn price(&self, terms: &Terms) -> Price {
        let (status, reported) = (self.outcome.status, self.outcome.cost);
        match &terms.cost {
            Cost::Request | Cost::Units(_) => Price::Units(self.row.held),
            cost => cost.real(self.row.held, status, reported),
        }
    }

    /// An upstream that says empty may also say for how long.
    fn upstream(&self, price: Price) -> Option<Span> {
        let seconds = self.outcome.retry_after_secs().filter(|_| price == Price::Drain)?;
        Some(Span::from_secs(seconds))
    }

    fn bans(&self) -> SmallVec<[BanRow; 1]> {
        let rule = |rule: &u8| Some((*rule, self.policy.bans.get(usize::from(*rule))?));
        let held = self.held.iter().filter_map(rule);
        held.map(|(rule, ban)| self.ban(rule, ban)).collect()
    }

    fn ban(&self, rule: u8, ban: &Ban) -> BanRow {
        let note = Note {
            reason: Some(ban.reason.clone()),
            status: ban.status,
            message: ban.message.clone(),
        };
        let shadow = self.shadow || self.storm;
        let act = Act { penalty: ban.penalty, origin: Origin::Ban, shadow, note };
        BanRow { rule, after: ban.after, act }
    }

    fn watch(&self) -> Option<Box<WatchRow>> {
        let watch = self.policy.watch.as_ref()?;
        let status = self.outcome.status;
        let note = Note { reason: Some("watched ratio exceeded".into()), ..Note::default() };
        let shadow = self.shadow || self.storm;
        let act = Act { penalty: watch.ban, origin: Origin::Ban, shadow, note };
        watch.of.contains(status).then(|| {
            let in_part = watch.share.contains(status);
            let (per, above, min) = (watch.per, watch.above, watch.min);
            Box::new(WatchRow { in_part, per, above, min, act })
        })
    }
}
