//! Buckets: reads their levels, and reconciles them with the levels that an upstream reports.

use std::time::SystemTime;

use catraca_core::batch::{
    self, Batch, BucketAdjustment, CheckReply, CheckRow, ReconcileRow, Reply, RowReply,
};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, Limit};
use catraca_core::policy::OnFailure;
use catraca_core::policy::{Mode, Name, PolicyId};
use catraca_core::rate::Rate;
use catraca_core::refusal::Refusal;
use catraca_core::request::COST_MAX;
use catraca_core::select::SelectedPolicy;
use catraca_core::subject::Subject;
use catraca_core::time::{Span, Time};
use smallvec::SmallVec;

use super::check::check_reply;
use super::exchange::{Events, Exchange, OneBatch};
use super::{Engine, find_policy};
use crate::error::Error;
use crate::rule_set::RuleSet;
use crate::settlement::{BucketState, Drift, Reconciliation, SkippedState};
use crate::store::{Store, StoreError};

/// The most buckets in one reconciliation.
pub const OBSERVATIONS_MAX: usize = 100;

/// The level of a bucket as an upstream reports it.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use catraca::{BucketObservation, Catalog, Engine, Subject};
///
/// let catalog = Catalog::parse(r#"
///     [policy.lookup]
///     by     = ["payer"]
///     bucket = { size = 100, refill = "2 per 1m" }
/// "#)?;
/// let engine = Engine::new(catalog);
/// let payer = Subject::from([("payer", "ana")]);
/// let reported = BucketObservation { policy: "lookup", available: 40, capacity: Some(100) };
/// let observed_at = SystemTime::now() - Duration::from_secs(1);
/// engine.reconcile("default", &payer, observed_at, &[reported])?;
/// assert_eq!(engine.bucket_state("default", "lookup", &payer)?.balance, 40);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BucketObservation<'a> {
    /// The policy.
    pub policy: &'a str,
    /// Whole tokens.
    pub available: i64,
    /// The size of the upstream's bucket, if it is known. If ours is smaller, for example because
    /// of a `margin`, the difference is taken off: else a reconciliation would use the margin up.
    pub capacity: Option<i64>,
}

impl BucketObservation<'_> {
    /// The level that a bucket of this size may have.
    fn level_for(&self, size: i64) -> i64 {
        let reserve = self.capacity.map_or(0, |capacity| capacity.saturating_sub(size).max(0));
        self.available.saturating_sub(reserve)
    }
}

/// A bucket that applies to a subject, with the row that reads it.
struct ApplicableBucket {
    policy: PolicyId,
    terms: BucketTerms,
    /// As the catalog writes it.
    refill: Rate,
    row: CheckRow,
}

impl<S: Store> Engine<S> {
    /// Every bucket that applies to a subject. Buckets that were never charged are full.
    pub fn buckets(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<BucketState>, Error> {
        let rules = self.rules.load();
        self.run(&mut self.buckets_exchange(&rules, namespace, subject)?)
    }

    /// The bucket of one policy.
    pub fn bucket_state(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<BucketState, Error> {
        let rules = self.rules.load();
        self.run(&mut self.bucket_exchange(&rules, namespace, policy, subject)?)
    }

    /// Corrects buckets to the levels that an upstream reports. A lower level always wins; a higher
    /// one only if the bucket was not written after `observed_at`, which must not be in the future.
    /// Policies that this engine does not have for the subject are skipped.
    pub fn reconcile(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
        observed_at: impl Into<SystemTime>,
        states: &[BucketObservation<'_>],
    ) -> Result<Reconciliation, Error> {
        let observed_at = observed_at.into().into();
        let rules = self.rules.load();
        self.run(&mut self.reconcile_exchange(&rules, namespace, subject, observed_at, states)?)
    }
}

impl<S> Engine<S> {
    pub(crate) fn buckets_exchange<'e>(
        &self,
        rules: &'e RuleSet,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<impl Exchange<Answer = Vec<BucketState>> + use<'e, S>, Error> {
        let found = self.find_buckets(rules, namespace, subject)?;
        Ok(OneBatch::new(peek_batch(&found), move |reply, _: &mut Events| {
            Ok(bucket_states(rules, &found, &check_reply(reply)?))
        }))
    }

    pub(crate) fn bucket_exchange<'e>(
        &self,
        rules: &'e RuleSet,
        namespace: &str,
        policy: &'e str,
        subject: &Subject<'_>,
    ) -> Result<impl Exchange<Answer = BucketState> + use<'e, S>, Error> {
        let found = self.buckets_of(rules, namespace, find_policy(rules, policy)?, subject)?;
        Ok(OneBatch::new(peek_batch(&found), move |reply, _: &mut Events| {
            let states = bucket_states(rules, &found, &check_reply(reply)?);
            states.into_iter().next_back().ok_or_else(|| not_a_bucket(policy).into())
        }))
    }

    pub(crate) fn reconcile_exchange(
        &self,
        rules: &RuleSet,
        namespace: &str,
        subject: &Subject<'_>,
        observed_at: Time,
        states: &[BucketObservation<'_>],
    ) -> Result<impl Exchange<Answer = Reconciliation> + use<S>, Error> {
        if !(1..=OBSERVATIONS_MAX).contains(&states.len()) {
            let refusal = Refusal::BadStateCount { count: states.len(), max: OBSERVATIONS_MAX };
            return Err(refusal.into());
        }
        if observed_at > self.now() {
            return Err(Refusal::FutureObservation.into());
        }
        let mut rows = Vec::new();
        let mut policies = Vec::new();
        let mut skipped = Vec::new();
        for state in states {
            let available = state.available;
            // Larger amounts could not be computed exactly.
            let capacity = state.capacity.unwrap_or(0);
            if available.unsigned_abs().max(capacity.unsigned_abs()) > COST_MAX.unsigned_abs() {
                let policy = state.policy.to_owned();
                return Err(Refusal::BadLevel { policy, available }.into());
            }
            let found = match self.observed_buckets(rules, namespace, state.policy, subject) {
                Ok(found) => found,
                Err(why) => {
                    skipped.push(SkippedState { policy: state.policy.to_owned(), why });
                    continue;
                }
            };
            for bucket in found {
                rows.push(ReconcileRow {
                    key: bucket.row.counter().key,
                    terms: bucket.terms,
                    shared: bucket.row.shared,
                    available: state.level_for(bucket.terms.size),
                    observed_at,
                });
                policies.push(rules.catalog.policy(bucket.policy).name.clone());
            }
        }
        Ok(OneBatch::new(Batch::Reconcile(rows), move |reply, _: &mut Events| {
            Ok(Reconciliation { drifts: drifts(policies, reply)?, skipped })
        }))
    }

    /// The buckets of a policy that an upstream names. Upstreams such as the central bank write
    /// names in capitals.
    fn observed_buckets(
        &self,
        rules: &RuleSet,
        namespace: &str,
        name: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<ApplicableBucket>, Refusal> {
        let id = find_policy(rules, name).or_else(|unknown| {
            let mut policies = rules.catalog.policies.iter();
            let index = policies.position(|policy| policy.name.eq_ignore_ascii_case(name));
            index.map(|index| PolicyId(index as u16)).ok_or(unknown)
        })?;
        let found = self.buckets_of(rules, namespace, id, subject)?;
        if found.is_empty() { Err(not_a_bucket(name)) } else { Ok(found) }
    }

    fn find_buckets(
        &self,
        rules: &RuleSet,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<ApplicableBucket>, Refusal> {
        let mut found = Vec::new();
        for index in 0..rules.catalog.policies.len() {
            match self.buckets_of(rules, namespace, PolicyId(index as u16), subject) {
                Ok(buckets) => found.extend(buckets),
                // Such a policy does not apply to this subject.
                Err(Refusal::MissingAttribute { .. } | Refusal::NoTier(_)) => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(found)
    }

    /// The buckets of one policy. A policy that `otherwise` selects instead is not included: it is
    /// found under its own name.
    fn buckets_of(
        &self,
        rules: &RuleSet,
        namespace: &str,
        id: PolicyId,
        subject: &Subject<'_>,
    ) -> Result<Vec<ApplicableBucket>, Refusal> {
        let scope = self.scope(rules, namespace);
        let rows = rules.selector(namespace).select(&[id], subject)?;
        let rows = rows.into_iter().filter(|row| row.policy == id && row.mode != Mode::Off);
        let found = rows.filter_map(|row| {
            let Limit::Bucket(terms) = row.terms?.limit else { return None };
            let reduced = Rate { amount: terms.tokens, per: Span::from_micros(terms.period) };
            let policy = rules.catalog.policy(id);
            let key = scope.key(&policy.name, &row.parts);
            Some(ApplicableBucket {
                policy: id,
                terms,
                refill: row.terms?.refill.unwrap_or(reduced),
                row: peek_row(key, &row, scope.family(policy), terms),
            })
        });
        Ok(found.collect())
    }
}

/// The batch that reads buckets and changes nothing.
fn peek_batch(found: &[ApplicableBucket]) -> Batch {
    let rows: SmallVec<[CheckRow; 1]> = found.iter().map(|bucket| bucket.row.clone()).collect();
    Batch::Check(batch::CheckBatch { rows, peek: true, ..batch::CheckBatch::default() })
}

/// The level of each bucket.
fn bucket_states(
    rules: &RuleSet,
    found: &[ApplicableBucket],
    reply: &CheckReply,
) -> Vec<BucketState> {
    found
        .iter()
        .zip(&reply.rows)
        .map(|(bucket, row)| bucket_state_of(rules, bucket, row, reply.now))
        .collect()
}

/// How each bucket changed.
fn drifts(policies: Vec<Name>, reply: Reply) -> Result<Vec<Drift>, Error> {
    let Reply::Reconcile(done) = reply else {
        return Err(StoreError::mismatched_reply().into());
    };
    let drift = |(policy, done): (Name, BucketAdjustment)| Drift {
        policy,
        before: done.before,
        after: done.after,
    };
    Ok(policies.into_iter().zip(done).map(drift).collect())
}

fn not_a_bucket(policy: &str) -> Refusal {
    Refusal::NotABucket(policy.to_owned())
}

fn peek_row(key: Key, row: &SelectedPolicy<'_, '_>, family: u64, terms: BucketTerms) -> CheckRow {
    CheckRow {
        key,
        family,
        tier_counter: row.tier_counter,
        shared: row.shared.clone(),
        limit: Limit::Bucket(terms),
        held: 0,
        penalty: None,
        shadow: false,
        count_denied: false,
        lease: 0,
        on_full: OnFailure::Local,
    }
}

fn bucket_state_of(
    rules: &RuleSet,
    bucket: &ApplicableBucket,
    row: &RowReply,
    now: Time,
) -> BucketState {
    let until = |at: Time| (!at.is_forever()).then(|| at.since(now));
    BucketState {
        policy: rules.catalog.policy(bucket.policy).name.clone(),
        size: bucket.terms.size,
        balance: row.free,
        refill: bucket.refill,
        reset_after: until(row.full_at),
        retry_after: row.fits_at.and_then(until),
        blocked_until: row.block.as_ref().map(|block| block.until).filter(|at| !at.is_forever()),
    }
}
