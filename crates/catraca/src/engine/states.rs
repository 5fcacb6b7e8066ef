//! Bucket states: what every applicable bucket holds, and what an upstream says it holds.

use catraca_core::batch::{
    self, Batch, CheckReply, CheckRow, ReconcileRow, Reconciled, Reply, RowReply,
};
use catraca_core::limit::{BucketTerms, Limit};
use catraca_core::policy::{Mode, Name, PolicyId};
use catraca_core::refusal::Refusal;
use catraca_core::request::COST_MAX;
use catraca_core::subject::Subject;
use catraca_core::time::Time;
use smallvec::SmallVec;

use super::check::checked;
use super::{Engine, find};
use crate::error::Error;
use crate::settlement::{BucketState, Drift};
use crate::store::{Store, StoreError, When};
use crate::world::World;

/// A bucket's level as an upstream saw it.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The policy.
    pub policy: &'a str,
    /// Whole tokens.
    pub available: i64,
}

/// A bucket that applies to a subject.
pub(crate) struct Found {
    policy: PolicyId,
    terms: BucketTerms,
    row: CheckRow,
}

/// An upstream's view as the store takes it, with the policy of each row.
pub(crate) struct Reconciling {
    pub batch: Batch,
    policies: Vec<Name>,
}

impl<S: Store> Engine<S> {
    /// Every bucket that applies to a subject, untouched ones full.
    pub fn buckets(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<BucketState>, Error> {
        let world = self.world.load();
        let found = self.find_buckets(&world, namespace, subject)?;
        let reply = checked(self.store.apply(&looking_at(&found), When::Store)?)?;
        Ok(states(&world, &found, &reply))
    }

    /// One bucket by its policy's name.
    pub fn bucket_state(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<BucketState, Error> {
        let world = self.world.load();
        let found = self.find_bucket(&world, namespace, policy, subject)?;
        let reply = checked(self.store.apply(&looking_at(&found), When::Store)?)?;
        states(&world, &found, &reply).pop().ok_or_else(|| not_a_bucket(policy).into())
    }

    /// Takes an upstream's view of some buckets: lower wins; higher only if nothing was written
    /// since.
    pub fn reconcile(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
        observed_at: Time,
        states: &[Observed<'_>],
    ) -> Result<Vec<Drift>, Error> {
        let world = self.world.load();
        let asked = self.plan_reconcile(&world, (namespace, subject), observed_at, states)?;
        asked.drifts(self.store.apply(&asked.batch, When::Store)?)
    }
}

impl Reconciling {
    /// How each bucket was changed.
    pub(crate) fn drifts(&self, reply: Reply) -> Result<Vec<Drift>, Error> {
        let Reply::Reconcile(done) = reply else {
            return Err(StoreError::odd_reply().into());
        };
        let drift = |(policy, done): (&Name, Reconciled)| Drift {
            policy: policy.clone(),
            before: done.before,
            after: done.after,
        };
        Ok(self.policies.iter().zip(done).map(drift).collect())
    }
}

impl<S> Engine<S> {
    pub(crate) fn find_buckets(
        &self,
        world: &World,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<Found>, Refusal> {
        let mut found = Vec::new();
        for place in 0..world.catalog.policies.len() {
            match self.bucket(world, namespace, PolicyId(place as u16), subject) {
                Ok(buckets) => found.extend(buckets),
                Err(Refusal::Missing { .. } | Refusal::NoTier(_)) => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(found)
    }

    pub(crate) fn find_bucket(
        &self,
        world: &World,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<Found>, Refusal> {
        self.bucket(world, namespace, find(world, policy)?, subject)
    }

    pub(crate) fn plan_reconcile(
        &self,
        world: &World,
        (namespace, subject): (&str, &Subject<'_>),
        observed_at: Time,
        states: &[Observed<'_>],
    ) -> Result<Reconciling, Refusal> {
        let (mut rows, mut policies) = (Vec::new(), Vec::new());
        for state in states {
            if state.available.unsigned_abs() > COST_MAX.unsigned_abs() {
                return Err(Refusal::BadCost(state.available));
            }
            let id = find(world, state.policy)?;
            let found = self.bucket(world, namespace, id, subject)?;
            if found.is_empty() {
                return Err(not_a_bucket(state.policy));
            }
            for bucket in found {
                let (key, terms, available) = (bucket.row.key, bucket.terms, state.available);
                rows.push(ReconcileRow { key, terms, available, observed_at });
                policies.push(world.catalog.policy(id).name.clone());
            }
        }
        Ok(Reconciling { batch: Batch::Reconcile(rows), policies })
    }

    /// The buckets of one policy itself: an `otherwise` shows under its own name.
    fn bucket(
        &self,
        world: &World,
        namespace: &str,
        id: PolicyId,
        subject: &Subject<'_>,
    ) -> Result<Vec<Found>, Refusal> {
        let scope = self.scope(world, namespace);
        let rows = world.selector().select(&[id], subject)?;
        let rows = rows.into_iter().filter(|row| row.policy == id && row.mode != Mode::Off);
        let found = rows.filter_map(|row| {
            let Limit::Bucket(terms) = row.terms?.limit else { return None };
            let policy = world.catalog.policy(id);
            let key = scope.key(&policy.name, &row.parts);
            Some(Found { policy: id, terms, row: looking(key, scope.family(policy), terms) })
        });
        Ok(found.collect())
    }
}

/// Looks at buckets, and moves nothing.
pub(crate) fn looking_at(found: &[Found]) -> Batch {
    let rows: SmallVec<[CheckRow; 1]> = found.iter().map(|bucket| bucket.row.clone()).collect();
    Batch::Check(batch::Check { rows, peek: true, ..batch::Check::default() })
}

/// What each bucket holds.
pub(crate) fn states(world: &World, found: &[Found], reply: &CheckReply) -> Vec<BucketState> {
    found.iter().zip(&reply.rows).map(|(b, row)| state(world, b, row, reply.now)).collect()
}

pub(crate) fn not_a_bucket(policy: &str) -> Refusal {
    Refusal::NotABucket(policy.to_owned())
}

fn looking(key: catraca_core::digest::Key, family: u64, terms: BucketTerms) -> CheckRow {
    CheckRow {
        key,
        family,
        limit: Limit::Bucket(terms),
        held: 0,
        penalty: None,
        shadow: false,
        count_denied: false,
        lease: 0,
    }
}

fn state(world: &World, bucket: &Found, row: &RowReply, now: Time) -> BucketState {
    let until = |at: Time| (!at.is_forever()).then(|| at.since(now));
    BucketState {
        policy: world.catalog.policy(bucket.policy).name.clone(),
        size: bucket.terms.size,
        balance: row.free,
        refill_tokens: bucket.terms.tokens,
        refill_period: catraca_core::time::Span::from_micros(bucket.terms.period),
        reset_after: until(row.full_at),
        retry_after: row.fits_at.and_then(until),
        blocked_until: row.block.as_ref().map(|block| block.until).filter(|at| !at.is_forever()),
    }
}
