//! Bucket states with other nodes: what the store says, or that it cannot be asked.

use catraca_core::subject::Subject;
use catraca_core::time::Time;

use super::SharedEngine;
use crate::engine::{Observed, checked, looking_at, not_a_bucket, states};
use crate::error::Error;
use crate::settlement::{BucketState, Drift};
use crate::store::SharedStore;

impl<S: SharedStore> SharedEngine<S> {
    /// Every bucket that applies to a subject, untouched ones full.
    pub async fn buckets(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<BucketState>, Error> {
        let world = self.engine.world_now();
        let found = self.engine.find_buckets(&world, namespace, subject)?;
        let reply = checked(self.ask(&looking_at(&found)).await?)?;
        Ok(states(&world, &found, &reply))
    }

    /// One bucket by its policy's name.
    pub async fn bucket_state(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<BucketState, Error> {
        let world = self.engine.world_now();
        let found = self.engine.find_bucket(&world, namespace, policy, subject)?;
        let reply = checked(self.ask(&looking_at(&found)).await?)?;
        states(&world, &found, &reply).pop().ok_or_else(|| not_a_bucket(policy).into())
    }

    /// Takes an upstream's view of some buckets: lower wins; higher only if nothing was written
    /// since.
    pub async fn reconcile(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
        observed_at: Time,
        states: &[Observed<'_>],
    ) -> Result<Vec<Drift>, Error> {
        let world = self.engine.world_now();
        let who = (namespace, subject);
        let asked = self.engine.plan_reconcile(&world, who, observed_at, states)?;
        asked.drifts(self.ask(&asked.batch).await?)
    }
}
