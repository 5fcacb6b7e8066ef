//! Crediting: a late event gives back to the buckets of the check it speaks of.

use catraca_core::batch::{Batch, CreditReply, Reply};
use catraca_core::credit::{CreditPlan, NotCredited, credit};
use catraca_core::request::name_in_bounds;
use catraca_core::subject::Subject;

use super::Engine;
use crate::error::Error;
use crate::event::Event;
use crate::settlement::Credited;
use crate::store::{Store, StoreError, When};
use crate::world::World;

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
        let credited = match self.planned(&world, (namespace, reference, event), subject)? {
            Ok(plan) => self.apply_credit(&world, plan)?,
            Err(reason) => Err(reason),
        };
        let refused = credited.as_ref().err().copied();
        self.record(&Event::Credited { event, refused });
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
        self.planned(&self.world.load(), (namespace, reference, event), subject).map(drop)
    }

    fn planned(
        &self,
        world: &World,
        (namespace, reference, event): (&str, &str, &str),
        subject: &Subject<'_>,
    ) -> Result<Result<CreditPlan, NotCredited>, Error> {
        name_in_bounds("the reference", reference)?;
        name_in_bounds("the event", event)?;
        let scope = self.scope(namespace);
        let key = scope.reference(reference);
        let Some(recalled) = self.recall(key)? else { return Ok(Err(NotCredited::Unknown)) };
        Ok(credit(&world.selector(), &scope, key, event, subject, &recalled)?)
    }

    fn apply_credit(&self, world: &World, plan: CreditPlan) -> Result<Credited, Error> {
        match self.store.apply(&Batch::Credit(plan.batch), When::Store)? {
            Reply::Credit(CreditReply::Applied(given)) => {
                let names = plan.policies.iter().map(|id| world.catalog.policy(*id).name.clone());
                Ok(Ok(names.zip(given).collect()))
            }
            Reply::Credit(CreditReply::Duplicate) => Ok(Err(NotCredited::Duplicate)),
            Reply::Credit(CreditReply::Unknown) => Ok(Err(NotCredited::Unknown)),
            _ => Err(StoreError::odd_reply().into()),
        }
    }
}
