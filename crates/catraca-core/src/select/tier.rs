//! Tiers: which terms a subject gets, by its attributes and by what is known of them.
//!
//! The first match wins. Must not change the algorithm: the catalog's reader has refused that.

use std::borrow::Cow;

use super::Selector;
use crate::catalog::Kind;
use crate::person;
use crate::policy::{Name, Policy, Terms, Tier};
use crate::refusal::Refusal;
use crate::subject::Subject;

impl<'c> Selector<'c> {
    /// The terms for a subject and the tier they come from; `None` when no tier matches and there
    /// are none of its own.
    pub(super) fn terms(
        &self,
        policy: &'c Policy,
        subject: &Subject<'_>,
    ) -> Result<Option<(Option<u8>, &'c Terms)>, Refusal> {
        for (place, tier) in policy.tiers.iter().enumerate() {
            if self.matches(tier, subject)? {
                return Ok(Some((Some(place as u8), &tier.terms)));
            }
        }
        Ok(policy.base.as_ref().map(|terms| (None, terms)))
    }

    fn matches(&self, tier: &Tier, subject: &Subject<'_>) -> Result<bool, Refusal> {
        for (name, values) in &tier.when {
            let Some(value) = self.known(name, subject)? else { return Ok(false) };
            if !values.iter().any(|wanted| **wanted == *value) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is known under a name: a derived name, a fact, or an attribute of the subject.
    pub(crate) fn known<'s>(
        &self,
        name: &str,
        subject: &Subject<'s>,
    ) -> Result<Option<Cow<'s, str>>, Refusal> {
        let Some(source) = self.facts.source(name) else { return self.value(name, subject) };
        let Some(about) = self.value(source, subject)? else { return Ok(None) };
        Ok(self.derived(source, name, &about).map(|value| Cow::Owned(value.to_string())))
    }

    fn derived(&self, source: &Name, name: &str, about: &str) -> Option<Name> {
        if name == "person" && self.catalog.kind(source) == Kind::CpfCnpj {
            return person::parse(about).ok().map(|id| id.person.as_str().into());
        }
        self.facts.about(source, about, name).cloned()
    }
}
