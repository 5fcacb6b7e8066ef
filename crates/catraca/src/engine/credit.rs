//! Credit: a later event gives units back to the buckets of an earlier check.

use catraca_core::batch::{Batch, CreditReply, Reply, StoredReference};
use catraca_core::credit_plan::{CreditPlan, CreditRejection, plan_credit};
use catraca_core::digest::Key;
use catraca_core::policy::PolicyId;
use catraca_core::refusal::Refusal;
use catraca_core::request::validate_name;
use catraca_core::subject::Subject;

use super::Engine;
use super::settle::recall_reply;
use crate::error::Error;
use crate::event::Event;
use crate::rule_set::RuleSet;
use crate::settlement::CreditResult;
use crate::store::{Store, StoreError, When};

/// The arguments of a credit.
pub(crate) struct CreditCall<'a, 's> {
    pub namespace: &'a str,
    pub reference: &'a str,
    pub event: &'a str,
    pub subject: &'a Subject<'s>,
}

impl<S: Store> Engine<S> {
    /// Gives units back for a later event, once per reference and event.
    pub fn credit(
        &self,
        namespace: &str,
        reference: &str,
        event: &str,
        subject: &Subject<'_>,
    ) -> Result<CreditResult, Error> {
        let rules = self.rules.load();
        let call = CreditCall { namespace, reference, event, subject };
        let key = self.credit_key(&rules, &call)?;
        let credited = match self.plan_credit(&rules, &call, key, self.recall(key)?.as_ref())? {
            Ok(plan) => {
                let reply = self.store.apply(&Batch::Credit(plan.batch), When::Store)?;
                credit_result(&rules, &plan.policies, reply)?
            }
            Err(reason) => Err(reason),
        };
        self.emit_credit(event, &credited);
        Ok(credited)
    }

    /// Returns the refusal that [`Engine::credit`] would return. Changes nothing.
    pub fn validate_credit(
        &self,
        namespace: &str,
        reference: &str,
        event: &str,
        subject: &Subject<'_>,
    ) -> Result<(), Error> {
        let call = CreditCall { namespace, reference, event, subject };
        let rules = self.rules.load();
        let key = self.credit_key(&rules, &call)?;
        self.plan_credit(&rules, &call, key, self.recall(key)?.as_ref()).map(drop)
    }

    fn recall(&self, key: Key) -> Result<Option<StoredReference>, Error> {
        recall_reply(self.store.apply(&Batch::Recall(key), When::Store)?)
    }
}

impl<S> Engine<S> {
    /// The key of the reference in the store.
    pub(crate) fn credit_key(
        &self,
        rules: &RuleSet,
        call: &CreditCall<'_, '_>,
    ) -> Result<Key, Refusal> {
        validate_name("the reference", call.reference)?;
        validate_name("the event", call.event)?;
        let scope = self.scope(rules, call.namespace);
        scope.reference_key_of(&rules.catalog, call.reference, call.subject)
    }

    /// The batch of a credit, or why nothing is credited. The outer error is an invalid call, the
    /// inner one a valid call whose credit is rejected.
    pub(crate) fn plan_credit(
        &self,
        rules: &RuleSet,
        call: &CreditCall<'_, '_>,
        key: Key,
        recalled: Option<&StoredReference>,
    ) -> Result<Result<CreditPlan, CreditRejection>, Error> {
        let Some(recalled) = recalled else { return Ok(Err(CreditRejection::Unknown)) };
        let scope = self.scope(rules, call.namespace);
        Ok(plan_credit(&rules.selector(), &scope, key, call.event, call.subject, recalled)?)
    }

    pub(crate) fn emit_credit(&self, event: &str, credited: &CreditResult) {
        let refused = credited.as_ref().err().copied();
        self.emit(&Event::Credited { event, refused });
    }
}

/// The tokens that each bucket received, or why nothing was credited.
pub(crate) fn credit_result(
    rules: &RuleSet,
    policies: &[PolicyId],
    reply: Reply,
) -> Result<CreditResult, Error> {
    match reply {
        Reply::Credit(CreditReply::Applied(given)) => {
            let names = policies.iter().map(|id| rules.catalog.policy(*id).name.clone());
            Ok(Ok(names.zip(given).collect()))
        }
        Reply::Credit(CreditReply::Duplicate) => Ok(Err(CreditRejection::Duplicate)),
        Reply::Credit(CreditReply::Unknown) => Ok(Err(CreditRejection::Unknown)),
        _ => Err(StoreError::mismatched_reply().into()),
    }
}
