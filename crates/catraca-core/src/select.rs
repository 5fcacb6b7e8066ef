//! Selection: the policies of a gate that apply to a request, each with its key and tier.
//!
//! Goes through the gate's policies in order, follows `otherwise`, makes one row for each attribute
//! of `each`, and matches tiers on attributes and facts. Must not depend on counters: the same
//! subject and catalog always give the same rows.

mod normalise;
pub mod orphan;
mod tier;

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::algorithm::SharedBuckets;
use crate::catalog::Catalog;
use crate::facts::NamespaceFacts;
use crate::policy::{KeyPart, KeySpec, Mode, Name, OnMissing, Policy, PolicyId, Terms};
use crate::refusal::Refusal;
use crate::subject::Subject;

pub(crate) use normalise::normalise_value;
pub use normalise::{normal_form, normalise, normalise_stored};
pub(crate) use tier::CounterSharing;

/// The longest chain of `otherwise`, in steps.
pub const CHAIN_MAX: usize = 4;

/// The inputs of a selection other than the subject.
#[derive(Clone, Copy, Debug)]
pub struct Selector<'c> {
    /// The catalog.
    pub catalog: &'c Catalog,
    /// The facts of the catalog and those set at run time that apply in the subject's namespace.
    pub facts: NamespaceFacts<'c>,
    /// The modes that an operator has overridden.
    pub modes: &'c [(PolicyId, Mode)],
}

/// One row of a selection: a policy that applies, with its key.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectedPolicy<'c, 's> {
    /// The policy that applies.
    pub policy: PolicyId,
    /// The index of the tier that matched.
    pub tier: Option<u8>,
    /// The id of the tier, if it has a counter of its own.
    pub tier_counter: Option<u32>,
    /// The buckets of the other tiers that share the counter.
    pub shared: Option<Arc<SharedBuckets>>,
    /// The terms; absent when the policy denies because its key is incomplete.
    pub terms: Option<&'c Terms>,
    /// The parts of the key: attributes with normalised values.
    pub parts: KeyParts<'c, 's>,
    /// The policy's mode, which an operator may have overridden.
    pub mode: Mode,
    /// The attribute of this row, for a policy with `each`.
    pub attribute: Option<&'c Name>,
    /// The policy of the gate that this one replaces, if `otherwise` led here.
    pub instead_of: Option<PolicyId>,
}

// Every check has one per policy.
const _: () = assert!(size_of::<SelectedPolicy<'_, '_>>() <= 144);

/// The parts of a key: attributes with normalised values.
pub type KeyParts<'c, 's> = SmallVec<[(&'c str, Cow<'s, str>); 2]>;
/// The rows of a gate.
pub type Selection<'c, 's> = SmallVec<[SelectedPolicy<'c, 's>; 1]>;

/// Why a policy does not apply to a subject.
enum MissingKey<'c> {
    /// None of the alternatives of a part is present.
    Part(&'c KeyPart),
    /// None of the attributes of `each` is present.
    Attributes(&'c [Name]),
    /// No tier matches, and the policy has no terms of its own.
    Tier,
}

impl<'c> Selector<'c> {
    /// The rows of these policies for a subject, in order; one for each policy and key.
    pub fn select<'s>(
        &self,
        policies: &[PolicyId],
        subject: &Subject<'s>,
    ) -> Result<Selection<'c, 's>, Refusal> {
        let mut rows = Selection::new();
        self.select_into(policies, subject, &mut rows)?;
        Ok(rows)
    }

    /// Like [`Self::select`], into the rows of a plan: they are large, so they are not copied.
    pub fn select_into<'s>(
        &self,
        policies: &[PolicyId],
        subject: &Subject<'s>,
        rows: &mut Selection<'c, 's>,
    ) -> Result<(), Refusal> {
        self.refuse_facts(subject)?;
        for policy in policies {
            self.follow(*policy, subject, rows)?;
        }
        Ok(())
    }

    /// Refuses a subject that contains the name of a fact: the caller could choose its own tier.
    fn refuse_facts(&self, subject: &Subject<'_>) -> Result<(), Refusal> {
        for name in subject.names() {
            if let Some(source) = self.facts.source(name) {
                let source_attribute = source.to_string();
                return Err(Refusal::ReservedAttribute { name: name.to_owned(), source_attribute });
            }
        }
        Ok(())
    }

    /// Adds the rows of a policy, or of the first policy of its `otherwise` chain that applies.
    fn follow<'s>(
        &self,
        first: PolicyId,
        subject: &Subject<'s>,
        rows: &mut Selection<'c, 's>,
    ) -> Result<(), Refusal> {
        let mut id = first;
        // The catalog has no longer chains; the bound makes sure that this loop ends.
        for _ in 0..=CHAIN_MAX {
            let policy = self.catalog.policy(id);
            let mode = self.mode(id);
            // A policy that is off does not apply, and its `otherwise` is not followed.
            if mode == Mode::Off {
                return Ok(());
            }
            let instead_of = (id != first).then_some(first);
            let facts = self.facts;
            let candidate = CandidatePolicy { id, policy, mode, instead_of, facts };
            let Some(missing) = self.add_rows(&candidate, subject, rows)? else { return Ok(()) };
            match policy.otherwise {
                Some(next) => id = next,
                None => return apply_on_missing(&candidate, &missing, rows),
            }
        }
        Ok(())
    }

    /// A policy's mode: the operator's override, else the catalog's.
    pub fn mode(&self, id: PolicyId) -> Mode {
        let overridden = self.modes.iter().find(|(other, _)| *other == id);
        overridden.map_or(self.catalog.policy(id).mode, |(_, mode)| *mode)
    }

    /// Adds the rows of one policy, or returns why it does not apply.
    fn add_rows<'s>(
        &self,
        candidate: &CandidatePolicy<'c>,
        subject: &Subject<'s>,
        rows: &mut Selection<'c, 's>,
    ) -> Result<Option<MissingKey<'c>>, Refusal> {
        match &candidate.policy.key_spec {
            KeySpec::By(parts) => self.add_row_by(candidate, parts, subject, rows),
            KeySpec::Each(names) => self.add_rows_each(candidate, names, subject, rows),
        }
    }

    fn add_row_by<'s>(
        &self,
        candidate: &CandidatePolicy<'c>,
        wanted: &'c [KeyPart],
        subject: &Subject<'s>,
        rows: &mut Selection<'c, 's>,
    ) -> Result<Option<MissingKey<'c>>, Refusal> {
        let mut parts = KeyParts::new();
        for part in wanted {
            match self.first_present(part, subject)? {
                Some(found) => parts.push(found),
                None => return Ok(Some(MissingKey::Part(part))),
            }
        }
        let Some(terms) = self.terms(candidate.policy, subject)? else {
            return Ok(Some(MissingKey::Tier));
        };
        candidate.add(rows, Some(terms), parts, None);
        Ok(None)
    }

    fn add_rows_each<'s>(
        &self,
        candidate: &CandidatePolicy<'c>,
        names: &'c [Name],
        subject: &Subject<'s>,
        rows: &mut Selection<'c, 's>,
    ) -> Result<Option<MissingKey<'c>>, Refusal> {
        let Some(terms) = self.terms(candidate.policy, subject)? else {
            return Ok(Some(MissingKey::Tier));
        };
        let mut missing = Some(MissingKey::Attributes(names));
        for name in names {
            if let Some(value) = self.value(name, subject)? {
                let parts = SmallVec::from_iter([(&**name, value)]);
                candidate.add(rows, Some(terms), parts, Some(name));
                missing = None;
            }
        }
        Ok(missing)
    }

    /// The keys of one policy for a subject, regardless of its tiers, its mode and `otherwise`.
    pub fn key_parts_of<'s>(
        &self,
        id: PolicyId,
        subject: &Subject<'s>,
    ) -> Result<SmallVec<[KeyParts<'c, 's>; 2]>, Refusal> {
        let policy = self.catalog.policy(id);
        match &policy.key_spec {
            KeySpec::By(wanted) => {
                let mut parts = KeyParts::new();
                for part in wanted {
                    let found = self.first_present(part, subject)?;
                    parts.push(found.ok_or_else(|| refusal(policy, &MissingKey::Part(part)))?);
                }
                Ok(SmallVec::from_iter([parts]))
            }
            KeySpec::Each(names) => {
                let mut all = SmallVec::new();
                for name in names {
                    let value = self.value(name, subject)?;
                    all.extend(value.map(|value| KeyParts::from_iter([(&**name, value)])));
                }
                if all.is_empty() {
                    Err(refusal(policy, &MissingKey::Attributes(names)))
                } else {
                    Ok(all)
                }
            }
        }
    }

    /// The first of a part's alternatives that the subject has, with its value.
    fn first_present<'s>(
        &self,
        part: &'c KeyPart,
        subject: &Subject<'s>,
    ) -> Result<Option<(&'c str, Cow<'s, str>)>, Refusal> {
        for name in part {
            if let Some(value) = self.value(name, subject)? {
                return Ok(Some((&**name, value)));
            }
        }
        Ok(None)
    }

    /// An attribute's normalised value.
    fn value<'s>(
        &self,
        name: &str,
        subject: &Subject<'s>,
    ) -> Result<Option<Cow<'s, str>>, Refusal> {
        subject.get(name).map(|raw| normalise_value(self.catalog, name, raw)).transpose()
    }
}

/// A policy of an `otherwise` chain that is being tried.
struct CandidatePolicy<'c> {
    id: PolicyId,
    policy: &'c Policy,
    mode: Mode,
    instead_of: Option<PolicyId>,
    facts: NamespaceFacts<'c>,
}

impl<'c> CandidatePolicy<'c> {
    /// Adds a row, unless there is already one of the same policy and key: two policies of a gate
    /// may fall back to the same one, which must count the request once.
    #[inline]
    fn add<'s>(
        &self,
        rows: &mut Selection<'c, 's>,
        terms: Option<(Option<u8>, &'c Terms)>,
        parts: KeyParts<'c, 's>,
        attribute: Option<&'c Name>,
    ) {
        if rows.iter().any(|other| other.policy == self.id && other.parts == parts) {
            return;
        }
        let tier = terms.and_then(|(tier, _)| tier);
        let (tier_counter, shared) = match terms {
            Some((tier, terms)) if !self.policy.tiers.is_empty() => {
                self.counter(tier, terms, &parts)
            }
            _ => (None, None),
        };
        rows.push(SelectedPolicy {
            policy: self.id,
            tier,
            tier_counter,
            shared,
            terms: terms.map(|(_, terms)| terms),
            parts,
            mode: self.mode,
            attribute,
            instead_of: self.instead_of.filter(|_| terms.is_some()),
        });
    }
}

impl CandidatePolicy<'_> {
    /// The id of the tier, if it has a counter of its own; else the buckets of the other tiers that
    /// share the counter of the key.
    fn counter(
        &self,
        tier: Option<u8>,
        terms: &Terms,
        parts: &KeyParts<'_, '_>,
    ) -> (Option<u32>, Option<Arc<SharedBuckets>>) {
        let attributes = parts.iter().map(|(name, _)| *name);
        let sharing = CounterSharing { policy: self.policy, facts: self.facts, attributes };
        let tier = tier.and_then(|index| self.policy.tiers.get(usize::from(index)));
        match tier.filter(|tier| sharing.has_own_counter(tier)) {
            Some(tier) => (Some(tier.id), None),
            None => (None, sharing.shared_buckets(&terms.limit)),
        }
    }
}

/// Applies `on_missing` at the end of an `otherwise` chain.
fn apply_on_missing<'c>(
    candidate: &CandidatePolicy<'c>,
    missing: &MissingKey<'c>,
    rows: &mut Selection<'c, '_>,
) -> Result<(), Refusal> {
    match candidate.policy.on_missing {
        OnMissing::Error => return Err(refusal(candidate.policy, missing)),
        OnMissing::Skip => {}
        OnMissing::Deny => candidate.add(rows, None, KeyParts::new(), None),
    }
    Ok(())
}

fn refusal(policy: &Policy, missing: &MissingKey<'_>) -> Refusal {
    let names = match missing {
        MissingKey::Part(names) => names.as_slice(),
        MissingKey::Attributes(names) => names,
        MissingKey::Tier => return Refusal::NoTier(policy.name.to_string()),
    };
    Refusal::MissingAttribute { policy: policy.name.to_string(), attribute: names.join("` or `") }
}
