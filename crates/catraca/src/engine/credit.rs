//! Crediting: a late event gives back to the buckets of the check it speaks of.

use catraca_core::batch::{Batch, CreditReply, Recalled, Reply};
use catraca_core::credit::{CreditPlan, NotCredited, credit};
use catraca_core::digest::Key;
use catraca_core::policy::PolicyId;
use catraca_core::refusal::Refusal;
use catraca_core::request::name_in_bounds;
use catraca_core::subject::Subject;

use super::Engine;
use super::settle::recalled;
use crate::error::Error;
use crate::event::Event;
use crate::settlement::Credited;
use crate::store::{Store, StoreError, When};
use crate::world::World;

/// A late event, of which check and for whom.
pub(crate) struct CreditCall<'a, 's> {
    pub namespace: &'a str,
    pub reference: &'a str,
    pub event: &'a str,
    pub subject: &'a Subject<'s>,
}

impl<S: Store> Engine<S> {
    /// Gives back for a late event, once per reference and event.
    pub fn credit(
        &self,
        namespace: &str,
        reference: &str,
        event: &str,
        subject: &Subject<'_>,
    ) -> Result<Credited, Error> {
        let world = self.world.load();
        let call = CreditCall { namespace, reference, event, subject };
        let key = self.credit_key(&world, &call)?;
        let credited = match self.plan_credit(&world, &call, (key, self.recall(key)?.as_ref()))? {
            Ok(plan) => {
                let reply = self.store.apply(&Batch::Credit(plan.batch), When::Store)?;
                given(&world, &plan.policies, reply)?
            }
            Err(reason) => Err(reason),
        };
        self.record_credit(event, &credited);
        Ok(credited)
    }

    /// Refuses what [`Engine::credit`] would refuse, and changes nothing.
    pub fn peek_credit(
        &self,
        namespace: &str,
        reference: &str,
        event: &str,
        subject: &Subject<'_>,
    ) -> Result<(), Error> {
        let call = CreditCall { namespace, reference, event, subject };
        let world = self.world.load();
        let key = self.credit_key(&world, &call)?;
        self.plan_credit(&world, &call, (key, self.recall(key)?.as_ref())).map(drop)
    }

    fn recall(&self, key: Key) -> Result<Option<Recalled>, Error> {
        recalled(self.store.apply(&Batch::Recall(key), When::Store)?)
    }
}

impl<S> Engine<S> {
    /// The reference to ask the store for.
    pub(crate) fn credit_key(
        &self,
        world: &World,
        call: &CreditCall<'_, '_>,
    ) -> Result<Key, Refusal> {
        name_in_bounds("the reference", call.reference)?;
        name_in_bounds("the event", call.event)?;
        let scope = self.scope(world, call.namespace);
        scope.find_reference(&world.catalog, call.reference, call.subject)
    }

    /// What to give to whom, or why nothing.
    pub(crate) fn plan_credit(
        &self,
        world: &World,
        call: &CreditCall<'_, '_>,
        (key, recalled): (Key, Option<&Recalled>),
    ) -> Result<Result<CreditPlan, NotCredited>, Error> {
        let Some(recalled) = recalled else { return Ok(Err(NotCredited::Unknown)) };
        let scope = self.scope(world, call.namespace);
        Ok(credit(&world.selector(), &scope, key, call.event, call.subject, recalled)?)
    }

    pub(crate) fn record_credit(&self, event: &str, credited: &Credited) {
        let refused = credited.as_ref().err().copied();
        self.record(&Event::Credited { event, refused });
    }
}

/// What each bucket took, or why none did.
pub(crate) fn given(world: &World, policies: &[PolicyId], reply: Reply) -> Result<Credited, Error> {
    match reply {
        Reply::Credit(CreditReply::Applied(given)) => {
            let names = policies.iter().map(|id| world.catalog.policy(*id).name.clone());
            Ok(Ok(names.zip(given).collect()))
        }
        Reply::Credit(CreditReply::Duplicate) => Ok(Err(NotCredited::Duplicate)),
        Reply::Credit(CreditReply::Unknown) => Ok(Err(NotCredited::Unknown)),
        _ => Err(StoreError::odd_reply().into()),
    }
}
