//! Sections 4 and 7: the calls of operators and upstreams, which apply to every key of a subject.

use std::rc::Rc;

use super::answer::{Drift, Refusal, StartedBlock};
use super::block::{self, BlockAct, Origin};
use super::catalog::{Algorithm, Length};
use super::cell::Cell;
use super::select::{ActiveTerms, Key, Subject, active_terms, counter, keys, tier, tier_counter};
use super::{Micros, Oracle};

impl Oracle {
    /// Blocks a subject under a policy.
    pub fn block(
        &mut self,
        policy: &str,
        subject: &Subject,
        length: Micros,
        reason: &str,
        now: Micros,
    ) -> Result<Vec<StartedBlock>, Refusal> {
        let mut blocks = Vec::new();
        for key in self.keys_of(policy, subject)? {
            let length = &Length::Fixed(length);
            let act = BlockAct { origin: Origin::Operator, reason, length, shadow: false };
            let slot = &mut self.cell_mut(policy, &key).block;
            let changed = block::act(slot, &act, now);
            let active = slot.as_ref();
            blocks.extend(active.map(|block| StartedBlock {
                until: block.until,
                origin: block.origin,
                changed,
            }));
        }
        Ok(blocks)
    }

    /// Lifts the blocks of a subject under a policy; returns whether there was one.
    pub fn unblock(
        &mut self,
        policy: &str,
        subject: &Subject,
        now: Micros,
    ) -> Result<bool, Refusal> {
        let mut was_blocked = false;
        for key in self.keys_of(policy, subject)? {
            was_blocked |= block::release(&mut self.cell_mut(policy, &key).block, now);
        }
        Ok(was_blocked)
    }

    /// Removes the blocks of a subject under a policy, with their levels: the store had no room.
    pub fn forget_block(&mut self, policy: &str, subject: &Subject) {
        for key in self.keys_of(policy, subject).unwrap_or_default() {
            self.cell_mut(policy, &key).block = None;
        }
    }

    /// Deletes the state of a subject under a policy, with the counters of all its tiers.
    pub fn reset(&mut self, policy: &str, subject: &Subject) -> Result<(), Refusal> {
        let catalog = Rc::clone(&self.catalog);
        for key in self.keys_of(policy, subject)? {
            *self.cell_mut(policy, &key) = Cell::default();
            for tier in catalog.policy(policy).into_iter().flat_map(|found| &found.tiers) {
                *self.cell_mut(policy, &tier_counter(&key, tier)) = Cell::default();
            }
        }
        Ok(())
    }

    /// Applies the level of a bucket that the upstream observed.
    pub fn reconcile(
        &mut self,
        policy: &str,
        subject: &Subject,
        level: i64,
        observed_at: Micros,
        now: Micros,
    ) -> Result<Vec<Drift>, Refusal> {
        if observed_at > now {
            return Err(Refusal::NotYet);
        }
        let catalog = Rc::clone(&self.catalog);
        let found = catalog.policy(policy).ok_or(Refusal::UnknownPolicy)?;
        let tier = tier(&catalog, found, subject);
        let terms = active_terms(found, tier);
        let mut drifts = Vec::new();
        for key in self.keys_of(policy, subject)? {
            if let Algorithm::Bucket { size, count, period } = *terms.algorithm {
                let counter = counter(&catalog, found, tier, &key);
                let shared = terms.clone().with_sharing(&catalog, Some(&key), Some(&counter));
                let terms = terms.bucket(size, count, period);
                let cell = self.cell_mut(policy, &counter);
                let before = cell.bucket.free(terms, now);
                let observed = (level, observed_at);
                cell.bucket.reconcile(terms, &shared.kept_buckets(), observed, now);
                drifts.push(Drift { before, after: cell.bucket.free(terms, now) });
            }
        }
        Ok(drifts)
    }

    /// The signed balance of a bucket, in whole tokens.
    pub fn balance(&self, policy: &str, subject: &Subject, now: Micros) -> Option<i64> {
        let found = self.catalog.policy(policy)?;
        let tier = tier(&self.catalog, found, subject);
        let terms: ActiveTerms = active_terms(found, tier);
        let (_, key) = keys(found, subject, None).into_iter().next()?;
        let counter = counter(&self.catalog, found, tier, &key);
        let terms = terms.with_sharing(&self.catalog, Some(&key), Some(&counter));
        self.cell(policy, &counter).free(&terms, now)
    }

    fn keys_of(&self, policy: &str, subject: &Subject) -> Result<Vec<Key>, Refusal> {
        let found = self.catalog.policy(policy).ok_or(Refusal::UnknownPolicy)?;
        let keys: Vec<Key> = keys(found, subject, None).into_iter().map(|(_, key)| key).collect();
        if keys.is_empty() { Err(Refusal::MissingAttribute) } else { Ok(keys) }
    }
}
