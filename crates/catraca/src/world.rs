//! The world a decision is taken in: one immutable value of catalog, facts and modes, swapped
//! whole.
//!
//! A decision loads it once and never waits for a writer. Must not be changed in place.

use std::borrow::Cow;
use std::sync::Arc;

use catraca_core::address::Address;
use catraca_core::catalog::{Catalog, Kind};
use catraca_core::digest::Digester;
use catraca_core::facts::Facts;
use catraca_core::lists::{Candidate, Entry, Lists};
use catraca_core::policy::{Mode, Name, PolicyId};
use catraca_core::refusal::Refusal;
use catraca_core::resets::Resets;
use catraca_core::route::UNROUTED;
use catraca_core::select::{Selector, normalise};
use catraca_core::subject::Subject;
use catraca_core::time::Time;

/// Everything that decides, apart from state.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub catalog: Arc<Catalog>,
    /// Facts stated at run time, kept apart so that they survive a new catalog.
    pub stated: Facts,
    /// The catalog's facts with the stated ones laid over.
    pub facts: Facts,
    /// Lists made at run time, whose private values are pseudonyms; they survive a new catalog.
    pub lists: Arc<Lists>,
    /// The entries behind `lists`: those that pass, and those that are refused.
    #[cfg_attr(not(feature = "records"), allow(dead_code, reason = "records tell what they were"))]
    pub entries: Arc<(Vec<Entry>, Vec<Entry>)>,
    /// Modes that an operator has overridden, by name, so that they survive a new catalog.
    pub overrides: Vec<(Name, Mode)>,
    /// The same by place in this catalog.
    pub modes: Vec<(PolicyId, Mode)>,
    /// Since when policies count anew; it survives a new catalog.
    pub resets: Arc<Resets>,
}

/// The policies that a gate's name stands for.
pub(crate) struct Asked<'w> {
    pub policies: &'w [PolicyId],
    /// The gate's name, when nobody declared it and the default stands in.
    pub unlisted: Option<&'w str>,
    /// Whether the catalog's default stands in for the gate.
    pub is_default: bool,
}

impl World {
    pub fn new(catalog: Arc<Catalog>) -> Self {
        let facts = catalog.facts.clone();
        let (stated, lists, entries) = (Facts::default(), Arc::default(), Arc::default());
        let (overrides, modes, resets) = (Vec::new(), Vec::new(), Arc::default());
        Self { catalog, stated, facts, lists, entries, overrides, modes, resets }
    }

    /// The same facts and overrides over another catalog; a stated fact whose name the new catalog
    /// gives to another attribute, or to callers, waits for a catalog that does not: the catalog
    /// decides who owns a name.
    pub fn with_catalog(&self, catalog: Arc<Catalog>) -> Self {
        self.over(catalog).0
    }

    /// The same, and how many facts have to wait.
    pub fn over(&self, catalog: Arc<Catalog>) -> (Self, u64) {
        let mut facts = catalog.facts.clone();
        let left_out = facts.overlay(&self.stated, |name| catalog.is_sent(name));
        let mut next = Self { catalog, facts, modes: Vec::new(), ..self.clone() };
        next.place_modes();
        (next, left_out)
    }

    /// The same with one mode overridden, or given back to the catalog.
    pub fn with_mode(&self, policy: &str, mode: Option<Mode>) -> Self {
        let mut next = self.clone();
        next.overrides.retain(|(name, _)| **name != *policy);
        next.overrides.extend(mode.map(|mode| (policy.into(), mode)));
        next.place_modes();
        next
    }

    /// The same with other lists made at run time.
    #[cfg(feature = "records")]
    pub fn with_lists(&self, allow: Vec<Entry>, block: Vec<Entry>) -> Self {
        let lists = Arc::new(Lists::new(allow.clone(), block.clone()));
        Self { lists, entries: Arc::new((allow, block)), ..self.clone() }
    }

    /// The same with whole resets that may be new.
    pub fn with_resets(&self, resets: &Resets) -> Self {
        let mut all = Resets::clone(&self.resets);
        all.merge(resets);
        Self { resets: Arc::new(all), ..self.clone() }
    }

    /// Since when a policy counts; zero if it was never reset for everybody.
    pub fn epoch(&self, policy: &str) -> Time {
        self.resets.epoch(policy).unwrap_or(Time::ZERO)
    }

    fn place_modes(&mut self) {
        let placed = self.overrides.iter();
        let placed = placed.filter_map(|(name, mode)| Some((self.catalog.find(name)?.0, *mode)));
        self.modes = placed.collect();
    }

    pub fn selector(&self) -> Selector<'_> {
        Selector { catalog: &self.catalog, facts: &self.facts, modes: &self.modes }
    }

    /// The policies of a gate, or the default that stands in for it. A request that no route
    /// matches is counted by the default policies themselves, so that operators block, peek and
    /// reset it by their names; any other undeclared name has counters of its own.
    pub fn asked<'w>(&'w self, gate: &'w str) -> Result<Asked<'w>, Refusal> {
        if let Some(gate) = self.catalog.gates.get(gate) {
            return Ok(Asked { policies: &gate.policies, is_default: false, unlisted: None });
        }
        match self.catalog.default.as_slice() {
            [] => Err(Refusal::UnknownGate(gate.to_owned())),
            default => {
                let unlisted = (gate != UNROUTED).then_some(gate);
                Ok(Asked { policies: default, is_default: true, unlisted })
            }
        }
    }

    /// Whether no list has an entry.
    pub fn lists_nobody(&self) -> bool {
        self.catalog.lists.is_empty() && self.lists.is_empty()
    }

    /// The list entry that decides for a subject, and whether it lets pass.
    pub fn listed(
        &self,
        subject: &Subject<'_>,
        digester: &Digester,
        now: Time,
    ) -> Result<Option<(&Entry, bool)>, Refusal> {
        if self.lists_nobody() {
            return Ok(None);
        }
        let mut addresses = Vec::new();
        let mut normal = Vec::new();
        for (name, raw) in subject.pairs().iter().filter(|(_, raw)| !raw.is_empty()) {
            if self.catalog.kind(name) == Kind::Ip {
                addresses.extend(Address::parse(raw).ok());
            }
            normal.push((*name, normalise(&self.catalog, name, raw)?));
        }
        let found = found_in(&self.catalog.lists, &addresses, &normal, now);
        if self.lists.is_empty() {
            return Ok(found);
        }
        let mut hidden = Vec::new();
        for (name, value) in normal {
            match self.catalog.is_private(name) {
                // An entry may be older than the secret.
                true => hidden.extend(
                    digester.pseudonyms(name, &value).map(|found| (name, Cow::Owned(found))),
                ),
                false => hidden.push((name, value)),
            }
        }
        let made = found_in(&self.lists, &addresses, &hidden, now);
        // Letting pass comes first; of two refusals the one that ends last is told.
        let rank = |found: &(&Entry, bool)| (found.1, found.0.end());
        Ok(found.into_iter().chain(made).max_by_key(rank))
    }
}

fn found_in<'l>(
    lists: &'l Lists,
    addresses: &[Address],
    normal: &[(&str, Cow<'_, str>)],
    now: Time,
) -> Option<(&'l Entry, bool)> {
    let attributes: Vec<(&str, &str)> = normal.iter().map(|(n, v)| (*n, &**v)).collect();
    let who = Candidate { addresses, attributes: &attributes };
    let allowed = lists.allowed(&who, now).map(|entry| (entry, true));
    allowed.or_else(|| lists.blocked(&who, now).map(|entry| (entry, false)))
}
