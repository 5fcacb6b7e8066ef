//! Selection of a tier: the terms that apply to a subject, by its attributes and facts about them.
//!
//! The first tier that matches wins.

use std::borrow::Cow;

use super::Selector;
use crate::catalog::AttributeKind;
use crate::cpf_cnpj;
use crate::policy::{Name, Policy, Terms, Tier};
use crate::refusal::Refusal;
use crate::subject::Subject;

impl<'c> Selector<'c> {
    /// The terms for a subject, with the index of their tier; `None` when no tier matches and the
    /// policy has no terms of its own.
    pub(super) fn terms(
        &self,
        policy: &'c Policy,
        subject: &Subject<'_>,
    ) -> Result<Option<(Option<u8>, &'c Terms)>, Refusal> {
        for (index, tier) in policy.tiers.iter().enumerate() {
            if self.matches(tier, subject)? {
                // `TIERS_MAX` is 255, so the index fits.
                return Ok(Some((Some(index as u8), &tier.terms)));
            }
        }
        Ok(policy.base.as_ref().map(|terms| (None, terms)))
    }

    fn matches(&self, tier: &Tier, subject: &Subject<'_>) -> Result<bool, Refusal> {
        for (name, values) in &tier.when {
            let Some(value) = self.lookup_value(name, subject)? else { return Ok(false) };
            if !values.iter().any(|wanted| **wanted == *value) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The value of a name: derived from an attribute, a fact, or an attribute of the subject.
    pub(crate) fn lookup_value<'s>(
        &self,
        name: &str,
        subject: &Subject<'s>,
    ) -> Result<Option<Cow<'s, str>>, Refusal> {
        let Some(source) = self.facts.source(name) else { return self.value(name, subject) };
        let Some(about) = self.value(source, subject)? else { return Ok(None) };
        Ok(self.derived_or_fact(source, name, &about).map(|value| Cow::Owned(value.to_string())))
    }

    fn derived_or_fact(&self, source: &Name, name: &str, about: &str) -> Option<Name> {
        if name == "person" && self.catalog.attribute_kind(source) == AttributeKind::CpfCnpj {
            return cpf_cnpj::parse(about).ok().map(|id| id.person.as_str().into());
        }
        self.facts.lookup(source, about, name).cloned()
    }
}
