//! Selection of a tier: the terms that apply to a subject, by its attributes and facts about them.
//!
//! The first tier that matches wins.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{CandidatePolicy, Selection, Selector};
use crate::algorithm::SharedBuckets;
use crate::facts::NamespaceFacts;
use crate::limit::Limit;
use crate::policy::{KeySpec, Mode, Name, Policy, PolicyId, Terms, Tier};
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
    /// Adds the rows of one policy as if a tier had matched: for each key of the subject, if the
    /// tier has a counter of its own, and the subject leaves open whether its requests match.
    pub fn select_tier_counter<'s>(
        &self,
        id: PolicyId,
        index: u8,
        subject: &Subject<'s>,
        rows: &mut Selection<'c, 's>,
    ) -> Result<(), Refusal> {
        let policy = self.catalog.policy(id);
        let mode = self.mode(id);
        let Some(tier) = policy.tiers.get(usize::from(index)) else { return Ok(()) };
        if mode == Mode::Off {
            return Ok(());
        }
        let facts = self.facts;
        let candidate = CandidatePolicy { id, policy, mode, instead_of: None, facts };
        for parts in self.key_parts_of(id, subject)? {
            let attributes = parts.iter().map(|(name, _)| *name);
            let sharing = CounterSharing { policy, facts, attributes };
            if !sharing.has_own_counter(tier) || !self.leaves_open(tier, &sharing, subject)? {
                continue;
            }
            let attribute = match &policy.key_spec {
                KeySpec::By(_) => None,
                KeySpec::Each(names) => names.iter().find(|name| *parts[0].0 == ***name),
            };
            candidate.add(rows, Some((Some(index), &tier.terms)), parts, attribute);
        }
        Ok(())
    }

    /// Whether some requests of the subject may match the tier and others not: what the tier asks
    /// for is neither known nor determined by the key, and the rest matches.
    fn leaves_open<'a, N: Iterator<Item = &'a str> + Clone>(
        &self,
        tier: &Tier,
        sharing: &CounterSharing<'a, N>,
        subject: &Subject<'_>,
    ) -> Result<bool, Refusal> {
        let mut is_open = false;
        for (name, values) in &tier.when {
            match self.lookup_value(name, subject)? {
                Some(value) if values.iter().any(|wanted| **wanted == *value) => {}
                None if !sharing.is_determined(name) => is_open = true,
                _ => return Ok(false),
            }
        }
        Ok(is_open)
    }

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
