//! Checks that are planned before their turn, for a replay.
//!
//! A plan depends on the rules and the check alone. So checks can be planned on many threads, and
//! decided one after the other. A plan must not depend on the state or the time: list entries
//! expire, so lists are asked when the check is decided.

use std::sync::Arc;

use catraca_core::decision::Decision;
use catraca_core::refusal::Refusal;
use catraca_core::request::Check;
use catraca_core::ticket::Ticket;

use super::{CheckExchange, CheckMode, PlannedCheck, TicketForm};
use crate::engine::Engine;
use crate::error::Error;
use crate::rule_set::RuleSet;
use crate::store::Store;

/// The rules of an engine at one instant, to plan checks with.
#[derive(Clone, Debug)]
pub struct RulesSnapshot(Arc<RuleSet>);

/// A check that is planned, and not decided yet.
pub struct CheckPlan<'r, 's> {
    rules: &'r RuleSet,
    check: Check<'s>,
    /// The refusal applies only if no list decides.
    planned: Result<PlannedCheck<'r, 's>, Refusal>,
}

impl<S: Store> Engine<S> {
    /// The rules that apply now.
    pub fn current_rules(&self) -> RulesSnapshot {
        RulesSnapshot(self.rules.load_full())
    }

    /// Plans a check, for [`Self::check_planned`]. Refuses one that no list could decide either.
    pub fn plan_check<'r, 's>(
        &self,
        rules: &'r RulesSnapshot,
        check: Check<'s>,
    ) -> Result<Box<CheckPlan<'r, 's>>, Error> {
        let rules = &*rules.0;
        check.validate()?;
        let gate = rules.policies_for(check.gate)?;
        let mut planned = PlannedCheck::new(CheckMode::Check);
        let planned = self.plan_gate(rules, &gate, &check, &mut planned).map(|()| planned);
        // Boxed, because a plan is large and waits for its turn in a list.
        Ok(Box::new(CheckPlan { rules, check, planned }))
    }

    /// Returns the error that [`Self::check_planned`] would return now. Changes nothing.
    pub fn validate_planned(&self, plan: &CheckPlan<'_, '_>) -> Result<(), Error> {
        let is_listed = self.decide_by_list(plan.rules, &plan.check)?.is_some();
        match &plan.planned {
            Err(refusal) if !is_listed => Err(refusal.clone().into()),
            _ => Ok(()),
        }
    }

    /// Decides a planned check as [`Self::check`] does, under the rules that it was planned with.
    /// Returns the ticket beside the decision, not sealed inside it, for a caller that settles with
    /// [`Self::settle_unsealed`] in this process: sealing and opening take a third of the time of a
    /// check and its settle.
    pub fn check_planned(
        &self,
        plan: Box<CheckPlan<'_, '_>>,
    ) -> Result<(Decision, Option<Ticket>), Error> {
        let CheckPlan { rules, check, planned } = *plan;
        let mut exchange = CheckExchange::new(self, rules, &check, CheckMode::Check);
        exchange.ticket = TicketForm::Unsealed(None);
        exchange.list_decision = self.decide_by_list(rules, &check)?;
        if exchange.list_decision.is_none() {
            exchange.planned = planned?;
        }
        let decision = self.run(&mut exchange)?;
        Ok((decision, exchange.into_ticket()))
    }
}
