//! Buckets over a shared store. There is no local fallback: if the store is unavailable, so are
//! they.

use catraca_core::subject::Subject;
use catraca_core::time::Time;

use super::SharedEngine;
use crate::engine::{BucketObservation, bucket_states, check_reply, not_a_bucket, peek_batch};
use crate::error::Error;
use crate::settlement::{BucketState, Drift};
use crate::store::SharedStore;

impl<S: SharedStore> SharedEngine<S> {
    /// Every bucket that applies to a subject. Buckets that were never charged are full.
    pub async fn buckets(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<BucketState>, Error> {
        let rules = self.engine.rules_snapshot();
        let found = self.engine.find_buckets(&rules, namespace, subject)?;
        let reply = check_reply(self.call_store(&peek_batch(&found)).await?)?;
        Ok(bucket_states(&rules, &found, &reply))
    }

    /// The bucket of one policy.
    pub async fn bucket_state(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<BucketState, Error> {
        let rules = self.engine.rules_snapshot();
        let found = self.engine.find_bucket(&rules, namespace, policy, subject)?;
        let reply = check_reply(self.call_store(&peek_batch(&found)).await?)?;
        bucket_states(&rules, &found, &reply).pop().ok_or_else(|| not_a_bucket(policy).into())
    }

    /// Corrects buckets to the levels that an upstream reports. A lower level always wins; a higher
    /// one only if the bucket was not written after `observed_at`.
    pub async fn reconcile(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
        observed_at: Time,
        states: &[BucketObservation<'_>],
    ) -> Result<Vec<Drift>, Error> {
        let rules = self.engine.rules_snapshot();
        let plan = self.engine.plan_reconcile(&rules, namespace, subject, observed_at, states)?;
        plan.drifts(self.call_store(&plan.batch).await?)
    }
}
