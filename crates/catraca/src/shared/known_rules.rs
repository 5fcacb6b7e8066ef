//! The rules that a node knows, each with the stamp of the last act about it.
//!
//! Of two acts about a rule the newer one counts, in any order in which nodes write and read them.
//! A removal leaves a tombstone, so that a rule that the store does not have was lost, not removed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use catraca_core::time::{Span, Time};

use super::rule_item::{RuleItem, RuleName};
use crate::records::{AttributeValue, RecordKind, RestoredFact};
use crate::store::{RuleStamp, StampedRule};

/// How long a removal is remembered: a node that had no connection for longer may bring the rule
/// back.
const TOMBSTONE_AGE: Span = Span::from_secs(7 * 24 * 3_600);
/// How much longer the store has a tombstone than nodes: their clocks differ.
const PURGE_DELAY: Span = Span::from_secs(3_600);
/// The most removals that are remembered.
const TOMBSTONES_MAX: usize = 10_000;

/// Rules and tombstones by name.
#[derive(Debug, Default)]
pub(super) struct KnownRules(BTreeMap<RuleName, KnownRule>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownRule {
    /// The default for a rule that only the records of this node have: it is never written to the
    /// store.
    pub stamp: RuleStamp,
    pub state: RuleState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RuleState {
    Present(RuleItem),
    Removed,
    /// Another version wrote it, or a node with a newer secret. The rule that this node could read
    /// last stays in force.
    Unreadable(Option<Box<RuleItem>>),
}

/// What a node must do after it has read the store's rules.
#[derive(Debug)]
pub(super) struct MergeResult {
    /// The rules whose last act the store does not have.
    pub lost: Vec<RuleName>,
    /// Tombstones that the store no longer needs.
    pub purged: Vec<StampedRule>,
    /// What is new for the records of this node.
    pub changes: Vec<RecordKind>,
}

impl KnownRules {
    /// The rules of the records of a node that starts.
    pub fn from_records(rules: BTreeMap<RuleName, RuleItem>) -> Self {
        let known =
            |rule| KnownRule { stamp: RuleStamp::default(), state: RuleState::Present(rule) };
        Self(rules.into_iter().map(|(name, rule)| (name, known(rule))).collect())
    }

    /// The rules that are in force.
    pub fn rules(&self) -> impl Iterator<Item = (&RuleName, &RuleItem)> {
        self.0.iter().filter_map(|(name, known)| Some((name, known.rule()?)))
    }

    /// The rule of this name, if it is in force.
    pub fn rule(&self, name: &RuleName) -> Option<&RuleItem> {
        self.0.get(name)?.rule()
    }

    /// Notes an act of this node, by the store's clock. Its stamp is later than that of the act
    /// that this node knew before, also if the clock was set back.
    pub fn act(
        &mut self,
        name: RuleName,
        rule: Option<RuleItem>,
        now: Time,
        tie_breaker: u32,
    ) -> RuleStamp {
        let last = self.0.get(&name).map_or(0, |known| known.stamp.micros);
        let micros = now.micros().max(0).unsigned_abs().max(last.saturating_add(1));
        let stamp = RuleStamp { micros, tie_breaker };
        let state = rule.map_or(RuleState::Removed, RuleState::Present);
        self.0.insert(name, KnownRule { stamp, state });
        stamp
    }

    /// How many rules this node cannot read.
    pub fn unreadable(&self) -> usize {
        let is_unreadable = |known: &&KnownRule| matches!(known.state, RuleState::Unreadable(_));
        self.0.values().filter(is_unreadable).count()
    }

    /// The names of all rules and tombstones.
    pub fn names(&self) -> Vec<RuleName> {
        self.0.keys().cloned().collect()
    }

    /// The last acts about these rules, as the store gets them.
    pub fn to_writes(
        &self,
        names: &[RuleName],
        seal: impl Fn(&RuleItem) -> Vec<u8>,
    ) -> Vec<StampedRule> {
        let write = |name: &RuleName| {
            let known = self.0.get(name).filter(|known| known.is_for_store())?;
            let body = match &known.state {
                RuleState::Present(rule) => Some(seal(rule)),
                RuleState::Removed => None,
                RuleState::Unreadable(_) => return None,
            };
            Some(StampedRule { name: name.clone(), stamp: known.stamp, body })
        };
        names.iter().filter_map(write).collect()
    }

    /// Takes over what the store has, unless this node knows a newer act.
    pub fn merge(&mut self, stored: BTreeMap<RuleName, KnownRule>, now: Time) -> MergeResult {
        let before = std::mem::replace(&mut self.0, stored);
        for (name, known) in &mut self.0 {
            if let RuleState::Unreadable(readable) = &mut known.state {
                *readable = before.get(name).and_then(KnownRule::rule).cloned().map(Box::new);
            }
        }
        let mut lost = Vec::new();
        for (name, known) in before.iter().filter(|(_, known)| known.is_for_store()) {
            match self.0.entry(name.clone()) {
                Entry::Occupied(stored) if stored.get().stamp >= known.stamp => continue,
                Entry::Occupied(mut stored) => drop(stored.insert(known.clone())),
                Entry::Vacant(entry) => drop(entry.insert(known.clone())),
            }
            lost.push(name.clone());
        }
        let purged = self.drop_tombstones(now);
        lost.retain(|name| self.0.contains_key(name));
        let changes = self.changes_since(&Self(before));
        MergeResult { lost, purged, changes }
    }

    /// Forgets old tombstones; returns those that the store need not have either.
    fn drop_tombstones(&mut self, now: Time) -> Vec<StampedRule> {
        let tombstones = self.0.iter().filter(|(_, known)| known.state == RuleState::Removed);
        let mut tombstones: Vec<(RuleStamp, RuleName)> =
            tombstones.map(|(name, known)| (known.stamp, name.clone())).collect();
        tombstones.sort_unstable_by(|a, b| b.cmp(a));
        let oldest = now.before(TOMBSTONE_AGE);
        let oldest_stored = oldest.before(PURGE_DELAY);
        let is_before =
            |stamp: RuleStamp, at: Time| stamp.micros < at.micros().max(0).unsigned_abs();
        let mut purged = Vec::new();
        for (index, (stamp, name)) in tombstones.into_iter().enumerate() {
            let is_surplus = index >= TOMBSTONES_MAX;
            if is_surplus || is_before(stamp, oldest) {
                self.0.remove(&name);
            }
            if is_surplus || is_before(stamp, oldest_stored) {
                purged.push(StampedRule { name, stamp, body: None });
            }
        }
        purged
    }

    /// The records that turn the earlier rules into these.
    fn changes_since(&self, before: &Self) -> Vec<RecordKind> {
        let mut changes: Vec<RecordKind> = Vec::new();
        let mut forgotten: Vec<(Option<String>, AttributeValue)> = Vec::new();
        for (_, rule) in before.rules().filter(|(name, _)| self.rule(name).is_none()) {
            if let RuleItem::Fact(RestoredFact { namespace, about, .. }) = rule {
                forgotten.push((namespace.clone(), about.clone()));
            }
            changes.extend(rule.to_removal());
        }
        // A removal removes all facts about a value.
        let is_forgotten = |rule: &RuleItem| {
            forgotten.iter().any(|(namespace, about)| rule.is_fact_about(namespace, about))
        };
        let added = self
            .rules()
            .filter(|(name, rule)| before.rule(name) != Some(rule) || is_forgotten(rule));
        changes.extend(added.map(|(_, rule)| rule.to_record()));
        changes
    }
}

impl KnownRule {
    fn rule(&self) -> Option<&RuleItem> {
        match &self.state {
            RuleState::Present(rule) => Some(rule),
            RuleState::Unreadable(readable) => readable.as_deref(),
            RuleState::Removed => None,
        }
    }

    fn is_for_store(&self) -> bool {
        self.stamp != RuleStamp::default()
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::policy::Mode;

    use super::*;

    fn mode(mode: Mode) -> Option<RuleItem> {
        Some(RuleItem::Mode("login".to_owned(), mode))
    }

    fn at(seconds: i64) -> Time {
        Time::from_micros(1_800_000_000_000_000 + seconds * 1_000_000)
    }

    fn stored(rules: &KnownRules) -> BTreeMap<RuleName, KnownRule> {
        rules.0.clone()
    }

    fn name(number: usize) -> RuleName {
        number.to_le_bytes().to_vec()
    }

    #[test]
    fn two_nodes_agree_on_the_newest_act_in_any_order() {
        let mut older = KnownRules::default();
        older.act(name(1), mode(Mode::Off), at(0), 1);
        let mut newer = KnownRules::default();
        newer.act(name(1), None, at(0), 2);
        let mut a = KnownRules(stored(&older));
        let mut b = KnownRules(stored(&newer));
        let merged = a.merge(stored(&newer), at(1));
        assert_eq!((merged.lost.len(), merged.changes.len()), (0, 1));
        let merged = b.merge(stored(&older), at(1));
        assert_eq!((merged.lost.len(), merged.changes.len()), (1, 0));
        assert_eq!(a.0, b.0);
        assert_eq!(a.rule(&name(1)), None);
    }

    #[test]
    fn an_act_is_newer_than_what_its_node_knew_even_if_the_clock_was_set_back() {
        let mut rules = KnownRules::default();
        let first = rules.act(name(1), mode(Mode::Off), at(100), 9);
        assert!(rules.act(name(1), None, at(0), 1) > first);
    }

    #[test]
    fn what_only_the_records_have_is_never_written() {
        let rule = RuleItem::Mode("login".to_owned(), Mode::Off);
        let mut rules = KnownRules::from_records(BTreeMap::from([(name(1), rule)]));
        assert!(rules.to_writes(&rules.names(), |_| Vec::new()).is_empty());
        let merged = rules.merge(BTreeMap::new(), at(0));
        assert!(merged.lost.is_empty());
        assert_eq!(merged.changes.len(), 1, "the records forget it");
    }

    #[test]
    fn a_rule_that_this_version_cannot_read_is_neither_lost_nor_written() {
        let mut rules = KnownRules::default();
        let stamp = rules.act(name(1), mode(Mode::Off), at(0), 1);
        let stamp = RuleStamp { micros: stamp.micros + 1, ..stamp };
        let unreadable = || {
            let state = RuleState::Unreadable(None);
            BTreeMap::from([(name(1), KnownRule { stamp, state })])
        };
        // Regression: the node dropped the rule, and its records forgot it.
        for _ in 0..2 {
            let merged = rules.merge(unreadable(), at(1));
            assert!(merged.lost.is_empty() && merged.changes.is_empty());
            assert_eq!(rules.rule(&name(1)), mode(Mode::Off).as_ref(), "the last one stays");
            assert_eq!(rules.unreadable(), 1);
        }
        assert!(rules.to_writes(&rules.names(), |_| Vec::new()).is_empty());
    }

    #[test]
    fn tombstones_are_bounded_in_number_and_in_time() {
        let mut rules = KnownRules::default();
        for number in 0..=TOMBSTONES_MAX {
            let after = Span::from_micros(i64::try_from(number).unwrap());
            rules.act(name(number), None, at(0).after(after), 1);
        }
        let all = stored(&rules);
        let merged = rules.merge(all.clone(), at(1));
        assert_eq!(merged.purged.len(), 1);
        assert_eq!(merged.purged[0].name, name(0));
        // Another node still has the oldest one in the store's copy: it must not write it again.
        let mut other = KnownRules(all);
        let merged = other.merge(stored(&rules), at(1));
        assert!(merged.lost.is_empty());
        let late = at(1).after(TOMBSTONE_AGE);
        assert!(rules.merge(stored(&rules), late).purged.is_empty());
        assert!(rules.0.is_empty());
        let merged = other.merge(stored(&other), late.after(PURGE_DELAY));
        assert_eq!(merged.purged.len(), TOMBSTONES_MAX);
    }
}
