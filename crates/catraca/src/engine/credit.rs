//! Credit: a later event gives units back to the buckets of an earlier check.

use catraca_core::batch::{Batch, CreditReply, Reply};
use catraca_core::credit_plan::{CreditRejection, plan_credit};
use catraca_core::digest::Key;
use catraca_core::policy::PolicyId;
use catraca_core::request::validate_name;
use catraca_core::subject::Subject;

use super::Engine;
#[cfg(feature = "shared")]
use super::exchange::{BatchTarget, ReplySource};
use super::exchange::{Events, Exchange, StoreReply};
use super::settle::recall_reply;
use crate::error::Error;
use crate::event::Event;
use crate::rule_set::RuleSet;
use crate::settlement::CreditResult;
use crate::store::{Store, StoreError, When};

/// The arguments of a credit.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # #[cfg(feature = "settle")] {
/// use catraca::{Catalog, Check, Credit, Engine, Limiter, Outcome, Settle, Subject};
///
/// let catalog = Catalog::parse(r#"
///     [policy.lookup]
///     by     = ["payer"]
///     bucket = { size = 100, refill = "1 per 1m" }
///     cost   = { "200" = 10, default = 0 }
///     credit = { payment = { amount = 4, on = ["200"] } }
/// "#)?;
/// let engine = Engine::new(catalog);
/// let outcome = Outcome::status(200);
/// let payer = Subject::from([("payer", "a")]);
/// engine.check(&Check::new("lookup", payer.clone()).reference("E1"))?;
/// engine.settle(&Settle::reference("E1", payer.clone(), &outcome))?;
///
/// let credit = Credit::new("E1", "payment", &payer);
/// assert_eq!(Limiter::credit(&engine, &credit).await?, Ok(vec![("lookup".into(), 4)]));
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Credit<'a, 's> {
    /// The namespace of the check.
    pub namespace: &'a str,
    /// The reference of the check.
    pub reference: &'a str,
    /// The event, as the policy's `credit` names it.
    pub event: &'a str,
    /// The subject of the check.
    pub subject: &'a Subject<'s>,
}

impl<'a, 's> Credit<'a, 's> {
    /// Gives back what the event is worth, in the default namespace.
    pub fn new(reference: &'a str, event: &'a str, subject: &'a Subject<'s>) -> Self {
        Self { namespace: super::default_namespace(), reference, event, subject }
    }

    /// Uses another namespace: that of the check.
    #[must_use]
    pub fn namespace(mut self, namespace: &'a str) -> Self {
        self.namespace = namespace;
        self
    }
}

/// A credit in progress.
pub(crate) struct CreditExchange<'e, 's, S> {
    engine: &'e Engine<S>,
    rules: &'e RuleSet,
    call: &'e Credit<'e, 's>,
    /// The key of the reference.
    key: Key,
    progress: CreditProgress,
    #[cfg(feature = "shared")]
    target: BatchTarget,
}

enum CreditProgress {
    /// The check is in the store, under its reference.
    Recalling(Batch),
    /// The check is known, and its policies give credit for the event.
    Crediting(Batch, Vec<PolicyId>),
    Done(CreditResult),
}

impl<S: Store> Engine<S> {
    /// Gives units back for a later event, once per reference and event.
    ///
    /// ```
    /// # #[cfg(feature = "settle")] {
    /// use catraca::{Catalog, Check, Credit, Engine, Outcome, Settle, Subject};
    ///
    /// let catalog = Catalog::parse(r#"
    ///     [policy.lookup]
    ///     by     = ["payer"]
    ///     bucket = { size = 100, refill = "1 per 1m" }
    ///     cost   = { "200" = 1, default = 0 }
    ///     credit = { payment = { amount = 1, on = ["200"] } }
    /// "#)?;
    /// let engine = Engine::new(catalog);
    /// let outcome = Outcome::status(200);
    /// let payer = Subject::from([("payer", "a")]);
    /// engine.check(&Check::new("lookup", payer.clone()).reference("E1"))?;
    /// engine.settle(&Settle::reference("E1", payer.clone(), &outcome))?;
    /// let given = engine.credit(&Credit::new("E1", "payment", &payer))?;
    /// assert_eq!(given, Ok(vec![("lookup".into(), 1)]));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn credit(&self, call: &Credit<'_, '_>) -> Result<CreditResult, Error> {
        let rules = self.rules.load();
        self.run(&mut self.credit_exchange(&rules, call)?)
    }

    /// Returns the refusal that [`Engine::credit`] would return. Changes nothing.
    pub fn validate_credit(&self, call: &Credit<'_, '_>) -> Result<(), Error> {
        let rules = self.rules.load();
        let mut exchange = self.credit_exchange(&rules, call)?;
        if let CreditProgress::Recalling(batch) = &exchange.progress {
            let recalled = self.store.apply(batch, When::Store)?;
            exchange.plan(recalled)?;
        }
        Ok(())
    }
}

impl<S> Engine<S> {
    /// Validates a credit and asks for the check that it is about.
    pub(crate) fn credit_exchange<'e, 's>(
        &'e self,
        rules: &'e RuleSet,
        call: &'e Credit<'e, 's>,
    ) -> Result<CreditExchange<'e, 's, S>, Error> {
        validate_name("the reference", call.reference)?;
        validate_name("the event", call.event)?;
        let scope = self.scope(rules, call.namespace);
        let key = scope.reference_key_of(&rules.catalog, call.reference, call.subject)?;
        Ok(CreditExchange {
            engine: self,
            rules,
            call,
            key,
            progress: CreditProgress::Recalling(Batch::Recall(key)),
            #[cfg(feature = "shared")]
            target: BatchTarget::Shared,
        })
    }
}

impl<S> CreditExchange<'_, '_, S> {
    /// Plans the batch from the recalled check. An error is an invalid call; a valid call whose
    /// credit is rejected is done.
    fn plan(&mut self, recalled: Reply) -> Result<(), Error> {
        let Some(recalled) = recall_reply(recalled)? else {
            self.progress = CreditProgress::Done(Err(CreditRejection::Unknown));
            return Ok(());
        };
        let scope = self.engine.scope(self.rules, self.call.namespace);
        let selector = self.rules.selector(self.call.namespace);
        let Credit { event, subject, .. } = self.call;
        let planned = plan_credit(&selector, &scope, self.key, event, subject, &recalled)?;
        self.progress = match planned {
            Ok(plan) => CreditProgress::Crediting(Batch::Credit(plan.batch), plan.policies),
            Err(rejection) => CreditProgress::Done(Err(rejection)),
        };
        Ok(())
    }
}

impl<S> Exchange for CreditExchange<'_, '_, S> {
    type Answer = CreditResult;

    fn batch(&self) -> Option<&Batch> {
        match &self.progress {
            CreditProgress::Recalling(batch) | CreditProgress::Crediting(batch, _) => Some(batch),
            CreditProgress::Done(_) => None,
        }
    }

    fn on_reply(&mut self, reply: StoreReply) -> Result<(), Error> {
        if let CreditProgress::Crediting(_, policies) = &self.progress {
            let result = credit_result(self.rules, policies, reply.reply)?;
            self.progress = CreditProgress::Done(result);
            return Ok(());
        }
        // The credit goes to the store that has the check.
        #[cfg(feature = "shared")]
        if reply.source == ReplySource::Local {
            self.target = BatchTarget::Local;
        }
        self.plan(reply.reply)
    }

    fn conclude(&mut self, _: &mut Events) -> Result<CreditResult, Error> {
        match &self.progress {
            CreditProgress::Done(result) => Ok(result.clone()),
            _ => Err(StoreError::mismatched_reply().into()),
        }
    }

    fn summary<'d>(&'d self, credited: &'d CreditResult) -> Option<Event<'d>> {
        let refused = credited.as_ref().err().copied();
        Some(Event::Credited { event: self.call.event, refused })
    }

    #[cfg(feature = "shared")]
    fn target(&self) -> BatchTarget {
        self.target
    }
}

/// The tokens that each bucket received, or why nothing was credited.
fn credit_result(
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
