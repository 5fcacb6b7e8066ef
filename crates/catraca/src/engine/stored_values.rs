//! The forms in which lists, facts and records store a value: its normal form under the catalog in
//! use or an earlier one, or a pseudonym.
//!
//! What operators list or state stays as it was stored when a catalog normalises its attribute
//! differently. Lookups compare the normal form of now, which is known unless only a pseudonym is.

use std::borrow::Cow;

#[cfg(feature = "records")]
use catraca_core::catalog::{AttributeKind, Catalog};
#[cfg(feature = "records")]
use catraca_core::digest::is_pseudonym;
use catraca_core::lists::{AccessListEntry, ListTarget};
use catraca_core::policy::Name;
use catraca_core::refusal::Refusal;
#[cfg(feature = "records")]
use catraca_core::request::validate_storable;
use catraca_core::select::{normalise, normalise_stored};

#[cfg(feature = "records")]
use super::Engine;
#[cfg(feature = "records")]
use crate::records::{AttributeValue, ListName, stored_values_of};
#[cfg(all(feature = "records", feature = "shared"))]
use crate::rule_set::RulePart;
use crate::rule_set::RuleSet;

#[cfg(feature = "records")]
impl<S> Engine<S> {
    /// The values under which the records may store a real value, first the form that the catalog
    /// uses now: itself, its pseudonyms, and those of an earlier catalog. With these a private
    /// value is found without being stored.
    pub fn stored_names(&self, attribute: &str, raw: &str) -> Result<Vec<AttributeValue>, Refusal> {
        let rules = self.rules();
        let about = |value: String| AttributeValue { attribute: attribute.to_owned(), value };
        let (mut values, normal) =
            match stored_values_of(&rules.catalog, self.digester(), attribute, raw) {
                Ok(values) => (values, normalise(&rules.catalog, attribute, raw)?),
                Err(refusal) => {
                    let stored = stored_text(&rules, attribute, raw).ok_or(refusal)?;
                    (vec![about(stored.to_string())], stored)
                }
            };
        let mut earlier: Vec<String> =
            earlier_values(&rules, attribute, &normal).iter().map(ToString::to_string).collect();
        let (allow, block) = &*rules.entries;
        let target =
            ListTarget::Value { attribute: attribute.to_owned(), value: normal.into_owned() };
        for list in [allow, block] {
            let targets = earlier_targets(&rules.catalog, list, &target);
            earlier.extend(targets.iter().filter_map(value_of).map(|(_, value)| value.to_owned()));
        }
        // As the caller sent it, which is the normal form of a value of the kind `text`.
        earlier.push(raw.to_owned());
        let mut hidden: Vec<String> = Vec::new();
        for value in &earlier {
            hidden.extend(self.digester().pseudonyms(attribute, value));
        }
        for value in earlier.into_iter().chain(hidden).map(about) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        Ok(values)
    }

    /// A value as callers send it, in the form in which lists and facts compare it.
    pub fn normalised_value(&self, attribute: &str, raw: &str) -> Result<String, Refusal> {
        validate_storable("the attribute's name", attribute)?;
        Ok(normalise(&self.rules().catalog, attribute, raw)?.into_owned())
    }

    /// The pseudonym of a real value, whether or not its attribute is private.
    pub fn pseudonym(&self, attribute: &str, raw: &str) -> Result<String, Refusal> {
        let clear = normalise(&self.rules().catalog, attribute, raw)?;
        Ok(self.digester().pseudonym(attribute, &clear))
    }

    /// Moves facts about private values to the normal forms of the catalog in use, and returns each
    /// new stored value with the earlier ones. The records know only pseudonyms of these values, so
    /// only a process that has the values can do this.
    #[cfg(feature = "shared")]
    pub(crate) fn renormalise_private_facts(&self) -> Vec<(AttributeValue, Vec<AttributeValue>)> {
        let mut moved = Vec::new();
        let changed = self.update_rules(|rules| {
            let mut next = rules.clone();
            let private = rules.catalog.attributes.iter().filter(|(_, found)| found.private);
            for (attribute, _) in private {
                for (stored, normal) in renormalised_values(rules, attribute) {
                    next.stated.move_value(attribute, &stored, &normal);
                    let about = |value| AttributeValue { attribute: attribute.to_string(), value };
                    let earlier = self.digester().pseudonyms(attribute, &stored).map(about);
                    let into = about(self.digester().pseudonym(attribute, &normal));
                    moved.push((into, earlier.collect()));
                }
            }
            next.rebuild(RulePart::Facts, self.digester());
            Ok::<_, Refusal>(next)
        });
        debug_assert!(changed.is_ok(), "this change is never refused");
        moved
    }

    /// Whether a run-time list has an entry that is stored under exactly this value.
    pub fn is_listed_as(&self, name: ListName, attribute: &str, stored: &str) -> bool {
        let rules = self.rules.load();
        let (allow, block) = &*rules.entries;
        let entries = match name {
            ListName::Allow => allow,
            ListName::Block => block,
        };
        entries.iter().any(|entry| value_of(&entry.target) == Some((attribute, stored)))
    }

    /// Whether no caller can have a stored value under the catalog in use.
    pub fn is_orphaned_value(&self, attribute: &str, stored: &str) -> bool {
        normalise_stored(&self.rules().catalog, attribute, stored).is_none()
    }

    /// How many unexpired entries of the run-time lists, and facts, match no caller any more, or
    /// may not, if `after` replaces the catalog in use. Of a value that is stored as a pseudonym,
    /// the normal form under another kind is not known.
    pub fn entries_and_facts_orphaned_by(&self, after: &Catalog) -> (u64, u64) {
        let rules = self.rules();
        let before = &rules.catalog;
        let is_orphaned = |attribute: &str, value: &str| {
            if is_pseudonym(value) {
                let kind = before.attribute_kind(attribute);
                let has_prefix = kind == AttributeKind::Ip;
                return kind != after.attribute_kind(attribute)
                    || has_prefix && before.network.ipv6_prefix != after.network.ipv6_prefix;
            }
            normalise_stored(before, attribute, value).is_some()
                && normalise_stored(after, attribute, value).is_none()
        };
        let now = self.now();
        let (allow, block) = &*rules.entries;
        let live = allow.iter().chain(block).filter(|entry| entry.is_live(now));
        let values = live.filter_map(|entry| value_of(&entry.target));
        let entries = values.filter(|(attribute, value)| is_orphaned(attribute, value)).count();
        let form = |attribute: &str, value: &str| {
            (!is_orphaned(attribute, value)).then(|| value.to_owned())
        };
        let (_, facts) = rules.stated.with_values(&form);
        (entries as u64, facts)
    }

    /// How many unexpired entries of the run-time lists, and facts, are about a value that no
    /// caller can have under the catalog in use.
    pub fn orphaned_entries_and_facts(&self) -> (u64, u64) {
        let rules = self.rules.load();
        let now = self.clock.now();
        let (allow, block) = &*rules.entries;
        let live = allow.iter().chain(block).filter(|entry| entry.is_live(now));
        let is_orphaned = |entry: &&AccessListEntry| {
            value_of(&entry.target).is_some_and(|(attribute, value)| {
                normalise_stored(&rules.catalog, attribute, value).is_none()
            })
        };
        (live.filter(is_orphaned).count() as u64, rules.orphaned_facts)
    }
}

/// The value that facts are about, in its normal form. If no caller can have the value, it is the
/// text under which facts are stored.
pub(super) fn fact_value<'v>(
    rules: &RuleSet,
    attribute: &str,
    raw: &'v str,
) -> Result<Cow<'v, str>, Refusal> {
    normalise(&rules.catalog, attribute, raw)
        .or_else(|refusal| stored_text(rules, attribute, raw).ok_or(refusal))
}

/// The normal form of a text under which facts or list entries are stored, or the text itself if no
/// caller can have the value. Absent if nothing is stored under it.
fn stored_text<'v>(rules: &RuleSet, attribute: &str, text: &'v str) -> Option<Cow<'v, str>> {
    let (allow, block) = &*rules.entries;
    let is_listed = |entry: &AccessListEntry| value_of(&entry.target) == Some((attribute, text));
    let is_stored = rules.stated.values(attribute).any(|stored| **stored == *text)
        || allow.iter().chain(block).any(is_listed);
    let normal = || normalise_stored(&rules.catalog, attribute, text);
    is_stored.then(|| normal().unwrap_or(Cow::Borrowed(text)))
}

/// The values in clear under which facts of an attribute are stored in the normal form of an
/// earlier catalog, each with its normal form of now.
#[cfg(all(feature = "records", feature = "shared"))]
fn renormalised_values(rules: &RuleSet, attribute: &str) -> Vec<(Name, String)> {
    let normal = |stored: &Name| {
        let normal = normalise_stored(&rules.catalog, attribute, stored)?;
        (*normal != **stored).then(|| (stored.clone(), normal.into_owned()))
    };
    rules.stated.values(attribute).filter_map(normal).collect()
}

/// The values under which facts are stored in the normal form of an earlier catalog, and which are
/// this value now.
pub(super) fn earlier_values(rules: &RuleSet, attribute: &str, about: &str) -> Vec<Name> {
    let is_form = |stored: &&Name| {
        let normal = normalise_stored(&rules.catalog, attribute, stored);
        ***stored != *about && normal.is_some_and(|normal| *normal == *about)
    };
    rules.stated.values(attribute).filter(is_form).cloned().collect()
}

/// The targets of a list that are stored in the normal form of an earlier catalog, and are about
/// this value now.
#[cfg(feature = "records")]
pub(super) fn earlier_targets(
    catalog: &Catalog,
    list: &[AccessListEntry],
    what: &ListTarget,
) -> Vec<ListTarget> {
    let Some((attribute, value)) = value_of(what) else { return Vec::new() };
    let is_form = |target: &&ListTarget| {
        let stored = value_of(target).filter(|(own, stored)| *own == attribute && *stored != value);
        let normal = stored.and_then(|(own, stored)| normalise_stored(catalog, own, stored));
        normal.is_some_and(|normal| *normal == *value)
    };
    list.iter().map(|entry| &entry.target).filter(is_form).cloned().collect()
}

/// The attribute and the value that an entry is about, as it is stored.
pub(super) fn value_of(target: &ListTarget) -> Option<(&str, &str)> {
    match target {
        ListTarget::Value { attribute, value } => Some((attribute, value)),
        ListTarget::Range(_) => None,
    }
}
