//! The rules of an engine (catalog, facts, lists, modes, epochs) as one immutable value.
//!
//! A change builds a new value and replaces the old one as a whole, so a decision loads it once and
//! never waits for a writer.

use std::borrow::Cow;
use std::sync::Arc;

use catraca_core::address::Address;
use catraca_core::catalog::{AttributeKind, Catalog};
use catraca_core::digest::{Digester, is_pseudonym};
use catraca_core::facts::FactSets;
#[cfg(feature = "records")]
use catraca_core::lists::ListTarget;
use catraca_core::lists::{AccessListEntry, CallerIdentity, Lists};
use catraca_core::policy::{Mode, Name, PolicyId};
use catraca_core::policy_epochs::PolicyEpochs;
use catraca_core::refusal::Refusal;
use catraca_core::request::DEFAULT_NAMESPACE;
use catraca_core::route::UNROUTED;
use catraca_core::select::{Selector, normalise, normalise_stored};
use catraca_core::subject::Subject;
use catraca_core::time::Time;
use smallvec::SmallVec;

/// Everything that a decision depends on, except stored state.
#[derive(Clone, Debug)]
pub(crate) struct RuleSet {
    pub catalog: Arc<Catalog>,
    /// Facts set at run time. Separate from `facts`, so that they survive a reload of the catalog.
    pub stated: FactSets,
    /// The catalog's facts, overlaid with `stated`.
    pub facts: FactSets,
    /// Facts of `stated` that are ignored, because the catalog uses their names otherwise.
    #[cfg_attr(
        not(all(feature = "records", feature = "shared")),
        allow(dead_code, reason = "only `App::inspect` reads it")
    )]
    pub ignored_facts: u64,
    /// Facts of `stated` about values that no caller can have under this catalog.
    #[cfg_attr(
        not(all(feature = "records", feature = "shared")),
        allow(dead_code, reason = "only `App` reads it")
    )]
    pub orphaned_facts: u64,
    /// Lists set at run time, which survive a reload. Values of private attributes are pseudonyms;
    /// so may be values of attributes that were private when the entry was made.
    pub lists: Arc<Lists>,
    /// The entries of `lists` as they are stored: the allowlist and the blocklist. Their values may
    /// be in the normal form of an earlier catalog.
    #[cfg_attr(
        not(all(feature = "records", feature = "shared")),
        allow(dead_code, reason = "only `App::inspect` reads it")
    )]
    pub entries: Arc<(Vec<AccessListEntry>, Vec<AccessListEntry>)>,
    /// Modes set by an operator, by policy name, so that they survive a reload.
    pub overrides: Vec<(Name, Mode)>,
    /// `overrides` by policy id, for this catalog only.
    pub modes: Vec<(PolicyId, Mode)>,
    /// The instant of each policy's last reset for all keys; it survives a reload.
    pub epochs: Arc<PolicyEpochs>,
}

/// What a change of this node concerns, and what is derived from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RulePart {
    /// `stated`, and from it `facts`.
    Facts,
    /// `entries`, and from them `lists`.
    #[cfg(feature = "records")]
    Lists,
    /// `overrides`, and from them `modes`.
    Modes,
}

/// The list entry that decides for a subject.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecidingEntry<'r> {
    pub entry: &'r AccessListEntry,
    /// Whether the entry is of the allowlist.
    pub allows: bool,
    /// Whether the entry is of the catalog, and not set at run time.
    #[cfg_attr(
        not(all(feature = "records", feature = "shared")),
        allow(dead_code, reason = "only `App::inspect` reads it")
    )]
    pub is_of_catalog: bool,
}

/// The policies of a gate.
pub(crate) struct GatePolicies<'w> {
    pub policies: &'w [PolicyId],
    /// The name of an undeclared gate, which becomes part of its keys. Absent for a declared gate,
    /// and for requests without a route.
    pub unlisted: Option<&'w str>,
    /// Whether the gate is undeclared and the catalog's default policies apply.
    pub is_default: bool,
}

impl RuleSet {
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self {
            facts: catalog.facts.clone().into(),
            catalog,
            stated: FactSets::default(),
            ignored_facts: 0,
            orphaned_facts: 0,
            lists: Arc::default(),
            entries: Arc::default(),
            overrides: Vec::new(),
            modes: Vec::new(),
            epochs: Arc::default(),
        }
    }

    /// The same facts and overrides with another catalog. If the new catalog uses the name of a
    /// stated fact for another attribute, or for an attribute that callers send, the catalog wins:
    /// the fact is ignored until a later catalog frees its name.
    pub fn with_catalog(&self, catalog: Arc<Catalog>) -> Self {
        self.with_catalog_counting(catalog).0
    }

    /// Like [`Self::with_catalog`]; also returns how many stated facts are ignored.
    pub fn with_catalog_counting(&self, catalog: Arc<Catalog>) -> (Self, u64) {
        let mut facts = FactSets::from(catalog.facts.clone());
        // Values are stored in the normal form of the catalog that was in use then.
        let normal = |attribute: &str, value: &str| {
            normalise_stored(&catalog, attribute, value).map(Cow::into_owned)
        };
        let (stated, orphaned) = self.stated.with_values(&normal);
        let ignored = facts.overlay(&stated, |name| catalog.is_caller_attribute(name));
        let mut next = Self { catalog, facts, modes: Vec::new(), ..self.clone() };
        next.ignored_facts = ignored;
        next.orphaned_facts = orphaned;
        next.resolve_modes();
        (next, ignored)
    }

    /// Builds again what is derived from this part.
    pub fn rebuild(&mut self, part: RulePart, digester: &Digester) {
        #[cfg(not(feature = "records"))]
        let _ = digester;
        match part {
            RulePart::Facts => *self = self.with_catalog(Arc::clone(&self.catalog)),
            #[cfg(feature = "records")]
            RulePart::Lists => {
                let (allow, block) = (*self.entries).clone();
                *self = self.with_lists(allow, block, digester);
            }
            RulePart::Modes => self.resolve_modes(),
        }
    }

    /// Sets the override of one policy's mode, or removes it. `modes` is built again after that.
    pub fn set_override(&mut self, policy: &str, mode: Option<Mode>) {
        self.overrides.retain(|(name, _)| **name != *policy);
        self.overrides.extend(mode.map(|mode| (policy.into(), mode)));
    }

    /// Replaces the run-time lists. Values in clear of private attributes become pseudonyms.
    #[cfg(feature = "records")]
    pub fn with_lists(
        &self,
        mut allow: Vec<AccessListEntry>,
        mut block: Vec<AccessListEntry>,
        digester: &Digester,
    ) -> Self {
        for entry in allow.iter_mut().chain(&mut block).filter(|entry| self.is_exposed(entry)) {
            if let ListTarget::Value { attribute, value } = &mut entry.target {
                let normal = normalise_stored(&self.catalog, attribute, value);
                *value = digester.pseudonym(attribute, normal.as_deref().unwrap_or(value));
            }
        }
        let lists = Arc::new(Lists::new(self.effective(&allow), self.effective(&block)));
        Self { lists, entries: Arc::new((allow, block)), ..self.clone() }
    }

    /// The same rules, with the lists as this catalog compares values, and without entries in clear
    /// of attributes that have become private.
    #[cfg(feature = "records")]
    pub fn with_normalised_lists(self, digester: &Digester) -> Self {
        let (allow, block) = (*self.entries).clone();
        self.with_lists(allow, block, digester)
    }

    /// These entries with their values as this catalog compares them, without those about values
    /// that no caller can have.
    #[cfg(feature = "records")]
    fn effective(&self, entries: &[AccessListEntry]) -> Vec<AccessListEntry> {
        let normal = |entry: &AccessListEntry| {
            let mut entry = entry.clone();
            if let ListTarget::Value { attribute, value } = &mut entry.target {
                *value = normalise_stored(&self.catalog, attribute, value)?.into_owned();
            }
            Some(entry)
        };
        entries.iter().filter_map(normal).collect()
    }

    /// Whether an entry has the value of a private attribute in clear.
    #[cfg(feature = "records")]
    fn is_exposed(&self, entry: &AccessListEntry) -> bool {
        match &entry.target {
            ListTarget::Value { attribute, value } => {
                self.catalog.is_private(attribute) && !is_pseudonym(value)
            }
            ListTarget::Range(_) => false,
        }
    }

    /// Merges policy epochs; an epoch never goes back.
    pub fn with_epochs(&self, epochs: &PolicyEpochs) -> Self {
        let mut all = PolicyEpochs::clone(&self.epochs);
        all.merge(epochs);
        Self { epochs: Arc::new(all), ..self.clone() }
    }

    /// The epoch of a policy; zero if it was never reset for all keys.
    pub fn epoch(&self, policy: &str) -> Time {
        self.epochs.epoch(policy).unwrap_or(Time::ZERO)
    }

    fn resolve_modes(&mut self) {
        // An override of a policy that this catalog lacks is kept for a later catalog.
        let resolve = |(name, mode): &(Name, Mode)| Some((self.catalog.find(name)?.0, *mode));
        self.modes = self.overrides.iter().filter_map(resolve).collect();
    }

    /// A policy's mode: the operator's override, else the catalog's.
    pub fn mode(&self, id: PolicyId) -> Mode {
        self.selector(DEFAULT_NAMESPACE).mode(id)
    }

    /// Selects policies for the subjects of a namespace.
    pub fn selector(&self, namespace: &str) -> Selector<'_> {
        let facts = self.facts.in_namespace(namespace);
        Selector { catalog: &self.catalog, facts, modes: &self.modes }
    }

    /// The policies of a gate, or the catalog's default if the gate is undeclared. A request
    /// without a route is counted under the default policies' own keys, so that operators can
    /// block, peek and reset it by their names. Any other undeclared name has separate counters.
    pub fn policies_for<'w>(&'w self, gate: &'w str) -> Result<GatePolicies<'w>, Refusal> {
        if let Some(gate) = self.catalog.gates.get(gate) {
            return Ok(GatePolicies {
                policies: &gate.policies,
                is_default: false,
                unlisted: None,
            });
        }
        match self.catalog.default.as_slice() {
            [] => Err(Refusal::UnknownGate(gate.to_owned())),
            _ if self.catalog.denies_unlisted && gate != UNROUTED => {
                Err(Refusal::UnknownGate(gate.to_owned()))
            }
            default => {
                let unlisted = (gate != UNROUTED).then_some(gate);
                Ok(GatePolicies { policies: default, is_default: true, unlisted })
            }
        }
    }

    /// Whether no list has an entry that applies in this namespace.
    pub fn has_no_list_entries(&self, namespace: &str) -> bool {
        self.catalog.lists.is_empty_in(namespace) && self.lists.is_empty_in(namespace)
    }

    /// The list entry that decides for a subject.
    pub fn list_entry_for(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
        digester: &Digester,
        now: Time,
    ) -> Result<Option<DecidingEntry<'_>>, Refusal> {
        if self.has_no_list_entries(namespace) {
            return Ok(None);
        }
        let mut addresses = Vec::new();
        let mut normalised = Vec::new();
        let pairs: SmallVec<[(&str, Cow<'_, str>); 4]> = subject.pairs().collect();
        for (name, raw) in pairs.iter().filter(|(_, raw)| !raw.is_empty()) {
            if self.catalog.attribute_kind(name) == AttributeKind::Ip {
                addresses.extend(Address::parse(raw).ok());
            }
            normalised.push((*name, normalise(&self.catalog, name, raw)?));
        }
        let found = find_in_lists(&self.catalog.lists, namespace, &addresses, &normalised, now);
        let found =
            found.map(|(entry, allows)| DecidingEntry { entry, allows, is_of_catalog: true });
        if self.lists.is_empty_in(namespace) {
            return Ok(found);
        }
        // An entry may be stored in clear or under a pseudonym: its attribute may have become
        // private since, or may have been private, and the secret may have changed.
        let mut stored = Vec::new();
        for (name, value) in normalised {
            // Pseudonyms cost a keyed digest each.
            if self.lists.has_pseudonyms(namespace, name) {
                let pseudonyms = digester.pseudonyms(name, &value);
                stored.extend(pseudonyms.map(|found| (name, Cow::Owned(found))));
            }
            // A caller must not pass for another one by sending the pseudonym of a value.
            if !is_pseudonym(&value) {
                stored.push((name, value));
            }
        }
        let run_time_entry = find_in_lists(&self.lists, namespace, &addresses, &stored, now);
        let run_time_entry = run_time_entry.map(|(entry, allows)| DecidingEntry {
            entry,
            allows,
            is_of_catalog: false,
        });
        // Allow entries win. Of two block entries the later end wins, so that the announced wait is
        // long enough.
        let rank = |found: &DecidingEntry<'_>| (found.allows, found.entry.end());
        Ok(found.into_iter().chain(run_time_entry).max_by_key(rank))
    }
}

fn find_in_lists<'l>(
    lists: &'l Lists,
    namespace: &str,
    addresses: &[Address],
    normalised: &[(&str, Cow<'_, str>)],
    now: Time,
) -> Option<(&'l AccessListEntry, bool)> {
    let attributes: Vec<(&str, &str)> = normalised.iter().map(|(n, v)| (*n, &**v)).collect();
    let identity = CallerIdentity { namespace, addresses, attributes: &attributes };
    let allowed = lists.find_allow_entry(&identity, now).map(|entry| (entry, true));
    allowed.or_else(|| lists.find_block_entry(&identity, now).map(|entry| (entry, false)))
}
