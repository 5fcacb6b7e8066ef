//! Peeks at the counters that tiers have of their own, for an inspection.

use catraca_core::policy::PolicyId;
use catraca_core::request::Check;

use super::{CheckExchange, CheckMode};
use crate::engine::Engine;
use crate::error::Error;
use crate::rule_set::RuleSet;

impl<S> Engine<S> {
    /// A peek at the counter of one tier, as if a request had selected the tier; `None` if the tier
    /// has none that requests of this subject could have charged.
    pub(crate) fn tier_peek_exchange<'e, 's>(
        &'e self,
        rules: &'e RuleSet,
        check: &'e Check<'s>,
        policy: PolicyId,
        tier: u8,
    ) -> Result<Option<CheckExchange<'e, 'e, 's, S>>, Error> {
        check.validate()?;
        let mut exchange = CheckExchange::new(self, rules, check, CheckMode::Peek);
        let plan = &mut exchange.planned.plan;
        let selector = rules.selector(check.namespace);
        selector.select_tier_counter(policy, tier, &check.subject, &mut plan.rows)?;
        if plan.rows.is_empty() {
            return Ok(None);
        }
        let scope = self.scope(rules, check.namespace);
        plan.plan_batch(&rules.catalog, &scope, check, || self.ids.next())?;
        Ok(Some(exchange))
    }
}
