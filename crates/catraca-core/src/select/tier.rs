//! Selection of a tier: the terms that apply to a subject, by its attributes and facts about them.
//!
//! The first tier that matches wins.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::{KeyParts, Selector};
use crate::catalog::AttributeKind;
use crate::cpf_cnpj;
use crate::facts::Facts;
use crate::policy::{Name, Policy, Terms, Tier};
use crate::refusal::Refusal;
use crate::subject::Subject;

/// The values that the tiers of a policy ask for, by name.
type LookupValues<'v> = SmallVec<[(&'v str, Option<Cow<'v, str>>); 2]>;

/// Whether a row counts in a counter of the tier alone (docs/adr/0025).
///
/// It does if a caller could choose the tier from one request to the next: the key does not
/// determine it. Otherwise two limits would apply to one counter, and each would judge units that
/// the other admitted. A tier with the limit of the policy itself needs no counter of its own.
pub(super) fn has_own_counter(
    policy: &Policy,
    tier: &Tier,
    parts: &KeyParts<'_, '_>,
    facts: &Facts,
) -> bool {
    let shares_limit = policy.base.as_ref().is_some_and(|base| base.limit == tier.terms.limit);
    !shares_limit && !tier.when.iter().all(|(name, _)| is_determined(name, parts, facts))
}

/// Whether the key determines a value: its attribute, or the attribute that it is a fact about or
/// derived from, is part of the key.
fn is_determined(name: &Name, parts: &KeyParts<'_, '_>, facts: &Facts) -> bool {
    let attribute = facts.source(name).unwrap_or(name);
    parts.iter().any(|(part, _)| **part == **attribute)
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
        if name == "person" && self.catalog.attribute_kind(source) == AttributeKind::CpfCnpj {
            return cpf_cnpj::parse(about).ok().map(|id| id.person.as_str());
        }
        self.facts.lookup(source, about, name).map(|value| &**value)
    }
}
