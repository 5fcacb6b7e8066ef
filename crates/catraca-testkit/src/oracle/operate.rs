//! Section 4 and 7: what operators and upstreams do to one (policy, key).
//!
//! It must act on every key the subject gives, and on nothing else.

use std::rc::Rc;

use super::answer::{Drift, Refusal, Stands};
use super::block::{self, Act, Origin};
use super::catalog::{Algorithm, Length};
use super::cell::Cell;
use super::select::{InForce, Key, Subject, in_force, keys, tier};
use super::{Micros, World};

impl World {
    /// Blocks a subject under a policy.
    pub fn block(
        &mut self,
        policy: &str,
        subject: &Subject,
        length: Micros,
        reason: &str,
        now: Micros,
    ) -> Result<Vec<Stands>, Refusal> {
        let mut standing = Vec::new();
        for key in self.named(policy, subject)? {
            let length = &Length::Fixed(length);
            let act = Act { origin: Origin::Operator, reason, length, shadow: false };
            let slot = &mut self.cell_mut(policy, &key).block;
            let changed = block::act(slot, &act, now);
            let stands = slot.as_ref().map(|block| (block.until, block.origin));
            standing.extend(stands.map(|(until, origin)| Stands { until, origin, changed }));
        }
        Ok(standing)
    }

    /// Releases a subject under a policy; says whether a block stood.
    pub fn unblock(
        &mut self,
        policy: &str,
        subject: &Subject,
        now: Micros,
    ) -> Result<bool, Refusal> {
        let mut stood = false;
        for key in self.named(policy, subject)? {
            stood |= block::release(&mut self.cell_mut(policy, &key).block, now);
        }
        Ok(stood)
    }

    /// Forgets everything of a subject under a policy.
    pub fn reset(&mut self, policy: &str, subject: &Subject) -> Result<(), Refusal> {
        for key in self.named(policy, subject)? {
            *self.cell_mut(policy, &key) = Cell::default();
        }
        Ok(())
    }

    /// Takes a bucket's level as it was seen upstream.
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
        let terms = in_force(found, tier(found, subject));
        let mut drifts = Vec::new();
        for key in self.named(policy, subject)? {
            if let Algorithm::Bucket { size, count, period } = *terms.algorithm {
                let (terms, cell) =
                    (terms.bucket(size, count, period), self.cell_mut(policy, &key));
                let before = cell.bucket.free(terms, now);
                cell.bucket.reconcile(terms, level, observed_at, now);
                drifts.push(Drift { before, after: cell.bucket.free(terms, now) });
            }
        }
        Ok(drifts)
    }

    /// The signed balance of a bucket, in whole tokens.
    pub fn balance(&self, policy: &str, subject: &Subject, now: Micros) -> Option<i64> {
        let found = self.catalog.policy(policy)?;
        let terms: InForce = in_force(found, tier(found, subject));
        let (_, key) = keys(found, subject, None).into_iter().next()?;
        self.cell(policy, &key).free(&terms, now)
    }

    fn named(&self, policy: &str, subject: &Subject) -> Result<Vec<Key>, Refusal> {
        let found = self.catalog.policy(policy).ok_or(Refusal::UnknownPolicy)?;
        let keys: Vec<Key> = keys(found, subject, None).into_iter().map(|(_, key)| key).collect();
        if keys.is_empty() { Err(Refusal::MissingAttribute) } else { Ok(keys) }
    }
}
