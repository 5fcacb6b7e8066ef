//! Selection of a tier: the terms that apply to a subject, by its attributes and facts about them.
//!
//! The first tier that matches wins.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Selector;
use crate::algorithm::SharedBuckets;
use crate::facts::NamespaceFacts;
use crate::limit::Limit;
use crate::policy::{Name, Policy, Terms, Tier};
use crate::refusal::Refusal;
use crate::subject::Subject;

/// The values that the tiers of a policy ask for, by name.
type LookupValues<'v> = SmallVec<[(&'v str, Option<Cow<'v, str>>); 2]>;

/// Which tiers of a policy share the counter of a key (docs/adr/0025).
#[derive(Clone, Copy)]
pub(crate) struct CounterSharing<'a, N> {
    pub policy: &'a Policy,
    pub facts: NamespaceFacts<'a>,
    /// The names of the attributes in the key.
    pub attributes: N,
}

impl<'a, N: Iterator<Item = &'a str> + Clone> CounterSharing<'a, N> {
    /// Whether a row counts in a counter of the tier alone.
    ///
    /// It does if a caller could choose the tier from one request to the next: the key does not
    /// determine it. Otherwise two limits would apply to one counter, and each would judge units
    /// that the other admitted. So does a tier with windows of another length, since none of them
    /// could keep what the others need. A tier with the limit of the policy itself needs no counter
    /// of its own.
    pub fn has_own_counter(&self, tier: &Tier) -> bool {
        let base = self.policy.base.as_ref();
        let shares_limit = base.is_some_and(|base| base.limit == tier.terms.limit);
        let is_determined = || tier.when.iter().all(|(name, _)| self.is_determined(name));
        !shares_limit && (!is_determined() || counts_apart(self.policy, tier))
    }

    /// The buckets of the other tiers that share the counter of a row with the limit `own`.
    pub fn shared_buckets(&self, own: &Limit) -> Option<Arc<SharedBuckets>> {
        let base = self.policy.base.iter().map(|base| &base.limit);
        let tiers = self.policy.tiers.iter().map(|tier| &tier.terms.limit);
        // Most tiers are no buckets or have the same. Then the facts need not be asked.
        SharedBuckets::new(own, base.clone().chain(tiers))?;
        let sharing = self.policy.tiers.iter().filter(|tier| !self.has_own_counter(tier));
        let sharing = base.chain(sharing.map(|tier| &tier.terms.limit));
        SharedBuckets::new(own, sharing).map(Arc::new)
    }

    /// Whether the key determines a value: its attribute, or the attribute that it is a fact about
    /// or derived from, is part of the key.
    fn is_determined(&self, name: &Name) -> bool {
        let attribute = self.facts.source(name).unwrap_or(name);
        self.attributes.clone().any(|part| *part == **attribute)
    }
}

/// Whether the limit of a tier cannot share a counter with that of the policy, or with those of the
/// other tiers if only the tiers have limits.
fn counts_apart(policy: &Policy, tier: &Tier) -> bool {
    let is_apart_from =
        |other: &Limit| tier.terms.limit.counts_apart_from(other, policy.count_denied);
    match &policy.base {
        Some(base) => is_apart_from(&base.limit),
        None => policy.tiers.iter().any(|other| is_apart_from(&other.terms.limit)),
    }
}

impl<'c> Selector<'c> {
    /// The terms for a subject, with the index of their tier; `None` when no tier matches and the
    /// policy has no terms of its own.
    pub(super) fn terms(
        &self,
        policy: &'c Policy,
        subject: &Subject<'_>,
    ) -> Result<Option<(Option<u8>, &'c Terms)>, Refusal> {
        let mut values = LookupValues::new();
        for (index, tier) in policy.tiers.iter().enumerate() {
            if self.matches(tier, subject, &mut values)? {
                // `TIERS_MAX` is 255, so the index fits.
                return Ok(Some((Some(index as u8), &tier.terms)));
            }
        }
        Ok(policy.base.as_ref().map(|terms| (None, terms)))
    }

    fn matches<'v, 's: 'v>(
        &self,
        tier: &'c Tier,
        subject: &Subject<'s>,
        found: &mut LookupValues<'v>,
    ) -> Result<bool, Refusal>
    where
        'c: 'v,
    {
        for (name, values) in &tier.when {
            // Tiers mostly ask for the same name.
            let index = match found.iter().position(|(known, _)| *known == &**name) {
                Some(index) => index,
                None => {
                    found.push((name, self.lookup_value(name, subject)?));
                    found.len() - 1
                }
            };
            let Some(value) = &found[index].1 else { return Ok(false) };
            if !values.iter().any(|wanted| **wanted == **value) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The value of a name: derived from an attribute, a fact, or an attribute of the subject.
    fn lookup_value<'v, 's: 'v>(
        &self,
        name: &str,
        subject: &Subject<'s>,
    ) -> Result<Option<Cow<'v, str>>, Refusal>
    where
        'c: 'v,
    {
        let Some(source) = self.facts.source(name) else { return self.value(name, subject) };
        let Some(about) = self.value(source, subject)? else { return Ok(None) };
        Ok(self.derived_or_fact(source, name, &about).map(Cow::Borrowed))
    }

    fn derived_or_fact(&self, source: &Name, name: &str, about: &str) -> Option<&'c str> {
        let derived = self.catalog.attribute_kind(source).derived_name();
        match derived.filter(|derived| derived.name == name) {
            Some(derived) => derived.derive(about),
            None => self.facts.lookup(source, about, name).map(|value| &**value),
        }
    }
}
