//! Planning a settle: a ticket and an outcome become one batch.
//!
//! Prices with the catalog in force and the ticket's tier; evaluates conditions here, so that
//! stores see only acts.
//! Must not touch state.

use smallvec::SmallVec;

use crate::batch::{self, BanRow, SettleRow, Told, WatchRow};
use crate::cell::block::{Act, Note, Origin};
use crate::condition::Verdict;
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
    /// Conditions that read a missing field or compared unlike things.
    pub failed: u32,
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
    let mut plan = SettlePlan { batch, rows: Vec::new(), failed: 0 };
    for (place, row) in ticket.body.rows.iter().enumerate() {
        let at = ticket.instants.get(place).copied().flatten();
        if let (Some(at), Some((id, policy))) = (at, selector.catalog.find(&row.policy)) {
            let shadow = row.shadow || selector.mode(id) != Mode::Enforce;
            let storm = storms(id);
            let judging = Judging { scope, ticket, row, policy, outcome, shadow, storm };
            plan.add(judging, at, (id, place));
        }
    }
    Ok(plan)
}

/// One row under judgement.
struct Judging<'a> {
    scope: &'a Scope<'a>,
    ticket: &'a Ticket,
    row: &'a TicketRow,
    policy: &'a Policy,
    outcome: &'a Outcome,
    /// Whether the policy did not enforce at the check, or does not now.
    shadow: bool,
    storm: bool,
}

impl SettlePlan {
    fn add(&mut self, judging: Judging<'_>, at: Time, place: (PolicyId, usize)) {
        let Some(terms) = judging.policy.terms_of(judging.row.tier) else { return };
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
            bans: judging.bans(&mut self.failed),
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

    fn bans(&self, failed: &mut u32) -> SmallVec<[BanRow; 1]> {
        let mut rows = SmallVec::new();
        for (rule, ban) in self.policy.bans.iter().enumerate() {
            match ban.when.holds(self.outcome, &self.ticket.body.attributes) {
                Verdict::True => rows.push(self.ban(rule as u8, ban)),
                Verdict::False => {}
                Verdict::Failed => *failed += 1,
            }
        }
        rows
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
