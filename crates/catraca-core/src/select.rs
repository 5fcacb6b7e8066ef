//! Selecting: which policies a request hits, with which key and tier, and why.
//!
//! Walks the gate in order, follows `otherwise`, expands `each`, matches tiers on attributes and
//! facts.
//! Must not touch state: the same subject and catalog always give the same rows.

mod normal;
mod tier;

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::catalog::Catalog;
use crate::facts::Facts;
use crate::policy::{Mode, Name, OnMissing, Part, Policy, PolicyId, Terms, Who};
use crate::refusal::Refusal;
use crate::subject::Subject;

pub use normal::{form, normalise};

/// The longest chain of `otherwise`.
pub const CHAIN_MAX: usize = 4;

/// Everything needed to select.
#[derive(Clone, Copy, Debug)]
pub struct Selector<'c> {
    /// The policies.
    pub catalog: &'c Catalog,
    /// What is known of attribute values.
    pub facts: &'c Facts,
    /// Modes that an operator has overridden.
    pub modes: &'c [(PolicyId, Mode)],
}

/// One policy that applies, with its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected<'c, 's> {
    /// The policy used.
    pub policy: PolicyId,
    /// The tier that matched.
    pub tier: Option<u8>,
    /// The terms; absent when the policy denies for want of a key.
    pub terms: Option<&'c Terms>,
    /// The key's parts: attribute and normalised value.
    pub parts: Parts<'c, 's>,
    /// Whether the policy decides.
    pub mode: Mode,
    /// The attribute of this row, for a policy that counts each.
    pub attribute: Option<&'c Name>,
    /// The policy that was asked first, when `otherwise` led here.
    pub instead_of: Option<PolicyId>,
}

/// The parts of a key.
pub type Parts<'c, 's> = SmallVec<[(&'c str, Cow<'s, str>); 2]>;
/// The rows of a gate.
pub type Selection<'c, 's> = SmallVec<[Selected<'c, 's>; 1]>;

/// Why a policy has no key for this subject.
enum Lack<'c> {
    Part(&'c Part),
    Attributes(&'c [Name]),
    Tier,
}

impl<'c> Selector<'c> {
    /// The rows of these policies for a subject, in order, one per (policy, key).
    pub fn select<'s>(
        &self,
        policies: &[PolicyId],
        subject: &Subject<'s>,
    ) -> Result<Selection<'c, 's>, Refusal> {
        self.refuse_facts(subject)?;
        let mut rows = Selection::new();
        for policy in policies {
            self.follow(*policy, subject, &mut rows)?;
        }
        Ok(rows)
    }

    /// A caller who could state a fact could choose a tier.
    fn refuse_facts(&self, subject: &Subject<'_>) -> Result<(), Refusal> {
        for (name, _) in subject.pairs() {
            if let Some(source) = self.facts.source(name) {
                let source_attribute = source.to_string();
                return Err(Refusal::NotYours { name: (*name).to_owned(), source_attribute });
            }
        }
        Ok(())
    }

    /// Tries a policy, then what it names as `otherwise`.
    fn follow<'s>(
        &self,
        asked: PolicyId,
        subject: &Subject<'s>,
        rows: &mut Selection<'c, 's>,
    ) -> Result<(), Refusal> {
        let mut id = asked;
        for _ in 0..=CHAIN_MAX {
            let policy = self.catalog.policy(id);
            let mode = self.mode(id);
            if mode == Mode::Off {
                return Ok(());
            }
            let tried = Tried { id, policy, mode, instead_of: (id != asked).then_some(asked) };
            let Some(lack) = self.rows_of(&tried, subject, rows)? else { return Ok(()) };
            match policy.otherwise {
                Some(next) => id = next,
                None => return missing(&tried, &lack, rows),
            }
        }
        Ok(())
    }

    /// A policy's mode: the operator's word, else the catalog's.
    pub fn mode(&self, id: PolicyId) -> Mode {
        let overridden = self.modes.iter().find(|(other, _)| *other == id);
        overridden.map_or(self.catalog.policy(id).mode, |(_, mode)| *mode)
    }

    /// Adds the rows of one policy, or says what it lacks.
    fn rows_of<'s>(
        &self,
        tried: &Tried<'c>,
        subject: &Subject<'s>,
        rows: &mut Selection<'c, 's>,
    ) -> Result<Option<Lack<'c>>, Refusal> {
        match &tried.policy.who {
            Who::By(parts) => self.row_by(tried, parts, subject, rows),
            Who::Each(names) => self.rows_each(tried, names, subject, rows),
        }
    }

    fn row_by<'s>(
        &self,
        tried: &Tried<'c>,
        wanted: &'c [Part],
        subject: &Subject<'s>,
        rows: &mut Selection<'c, 's>,
    ) -> Result<Option<Lack<'c>>, Refusal> {
        let mut parts = Parts::new();
        for part in wanted {
            match self.first_present(part, subject)? {
                Some(found) => parts.push(found),
                None => return Ok(Some(Lack::Part(part))),
            }
        }
        let Some(terms) = self.terms(tried.policy, subject)? else {
            return Ok(Some(Lack::Tier));
        };
        tried.add(rows, Some(terms), parts, None);
        Ok(None)
    }

    fn rows_each<'s>(
        &self,
        tried: &Tried<'c>,
        names: &'c [Name],
        subject: &Subject<'s>,
        rows: &mut Selection<'c, 's>,
    ) -> Result<Option<Lack<'c>>, Refusal> {
        let Some(terms) = self.terms(tried.policy, subject)? else {
            return Ok(Some(Lack::Tier));
        };
        let mut lack = Some(Lack::Attributes(names));
        for name in names {
            if let Some(value) = self.value(name, subject)? {
                let parts = SmallVec::from_iter([(&**name, value)]);
                tried.add(rows, Some(terms), parts, Some(name));
                lack = None;
            }
        }
        Ok(lack)
    }

    /// The keys that one policy itself would count, whatever its tiers and `otherwise` say.
    pub fn parts_of<'s>(
        &self,
        id: PolicyId,
        subject: &Subject<'s>,
    ) -> Result<SmallVec<[Parts<'c, 's>; 2]>, Refusal> {
        let policy = self.catalog.policy(id);
        match &policy.who {
            Who::By(wanted) => {
                let mut parts = Parts::new();
                for part in wanted {
                    let found = self.first_present(part, subject)?;
                    parts.push(found.ok_or_else(|| refusal(policy, &Lack::Part(part)))?);
                }
                Ok(SmallVec::from_iter([parts]))
            }
            Who::Each(names) => {
                let mut all = SmallVec::new();
                for name in names {
                    let value = self.value(name, subject)?;
                    all.extend(value.map(|value| Parts::from_iter([(&**name, value)])));
                }
                if all.is_empty() {
                    Err(refusal(policy, &Lack::Attributes(names)))
                } else {
                    Ok(all)
                }
            }
        }
    }

    fn first_present<'s>(
        &self,
        part: &'c Part,
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
        subject.get(name).map(|raw| normalise(self.catalog, name, raw)).transpose()
    }
}

/// A policy on the way from the one that was asked to the one that is used.
struct Tried<'c> {
    id: PolicyId,
    policy: &'c Policy,
    mode: Mode,
    instead_of: Option<PolicyId>,
}

impl<'c> Tried<'c> {
    /// One row per (policy, key), at its first place.
    #[inline]
    fn add<'s>(
        &self,
        rows: &mut Selection<'c, 's>,
        terms: Option<(Option<u8>, &'c Terms)>,
        parts: Parts<'c, 's>,
        attribute: Option<&'c Name>,
    ) {
        if rows.iter().any(|other| other.policy == self.id && other.parts == parts) {
            return;
        }
        rows.push(Selected {
            policy: self.id,
            tier: terms.and_then(|(tier, _)| tier),
            terms: terms.map(|(_, terms)| terms),
            parts,
            mode: self.mode,
            attribute,
            instead_of: self.instead_of.filter(|_| terms.is_some()),
        });
    }
}

/// What a policy says of a subject that lacks its key.
fn missing<'c>(
    tried: &Tried<'c>,
    lack: &Lack<'c>,
    rows: &mut Selection<'c, '_>,
) -> Result<(), Refusal> {
    match tried.policy.on_missing {
        OnMissing::Error => return Err(refusal(tried.policy, lack)),
        OnMissing::Skip => {}
        OnMissing::Deny => tried.add(rows, None, Parts::new(), None),
    }
    Ok(())
}

fn refusal(policy: &Policy, lack: &Lack<'_>) -> Refusal {
    let names = match lack {
        Lack::Part(names) => names.as_slice(),
        Lack::Attributes(names) => names,
        Lack::Tier => return Refusal::NoTier(policy.name.to_string()),
    };
    Refusal::Missing { policy: policy.name.to_string(), attribute: names.join("` or `") }
}
