//! Operators' acts on keys: block, unblock and reset; and facts set at run time.

use catraca_core::batch::{Batch, Reply};
use catraca_core::cell::block::{Block, BlockProposal};
use catraca_core::digest::Key;
use catraca_core::plan::display_parts;
use catraca_core::refusal::Refusal;
use catraca_core::request::{DEFAULT_NAMESPACE, validate_reason, validate_storable};
use catraca_core::select::normalise;
use catraca_core::subject::Subject;
use catraca_core::time::{Span, Time};

use super::exchange::{Events, Exchange, OneBatch};
use super::{Engine, find_policy};
use crate::error::Error;
use crate::event::{BlockEvent, Event, SubjectKey};
use crate::rule_set::RuleSet;
use crate::settlement::BlockResult;
use crate::store::{Store, StoreError};

impl<S: Store> Engine<S> {
    /// Blocks a subject under one policy. For an `each` policy, blocks every key of the subject.
    pub fn block(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
        proposal: BlockProposal,
    ) -> Result<BlockResult, Error> {
        let rules = self.rules.load();
        self.run(&mut self.block_exchange(&rules, namespace, policy, subject, proposal)?)
    }

    /// Returns the refusal that [`Engine::block`] would return. Changes nothing.
    pub fn validate_block(
        &self,
        policy: &str,
        subject: &Subject<'_>,
        proposal: &BlockProposal,
    ) -> Result<(), Error> {
        validate_proposal(proposal)?;
        self.validate_key_act(policy, subject)
    }

    /// Returns the refusal that [`Engine::unblock`] and [`Engine::reset`] would return. Changes
    /// nothing.
    pub fn validate_key_act(&self, policy: &str, subject: &Subject<'_>) -> Result<(), Error> {
        let rules = self.rules.load();
        Ok(self.resolve_keys(&rules, DEFAULT_NAMESPACE, policy, subject).map(drop)?)
    }

    /// Ends the blocks of a subject under one policy. Returns whether any was active.
    pub fn unblock(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<bool, Error> {
        let keys = self.resolve_keys(&self.rules.load(), namespace, policy, subject)?;
        self.run(&mut self.unblock_exchange(keys))
    }

    /// Clears counters, block, level and ban counts of a subject under one policy.
    pub fn reset(&self, namespace: &str, policy: &str, subject: &Subject<'_>) -> Result<(), Error> {
        let keys = self.resolve_keys(&self.rules.load(), namespace, policy, subject)?;
        self.run(&mut self.reset_exchange(keys))
    }
}

impl<S> Engine<S> {
    /// Blocks the keys of a subject.
    pub(crate) fn block_exchange(
        &self,
        rules: &RuleSet,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
        proposal: BlockProposal,
    ) -> Result<impl Exchange<Answer = BlockResult>, Error> {
        validate_proposal(&proposal)?;
        let keys = self.resolve_keys(rules, namespace, policy, subject)?;
        let epoch = rules.epoch(policy);
        let rows = keys.iter().map(|subject| (subject.key, proposal.clone()));
        let batch = Batch::Block(rows.collect());
        Ok(OneBatch::new(batch, move |reply, events: &mut Events| {
            self.conclude_block(keys, epoch, &proposal, reply, events)
        }))
    }

    /// Ends the blocks of keys. The answer is whether any was active.
    pub(crate) fn unblock_exchange(&self, keys: Vec<SubjectKey>) -> impl Exchange<Answer = bool> {
        let batch = Batch::Unblock(keys_only(&keys));
        OneBatch::new(batch, move |reply, events: &mut Events| {
            let Reply::Unblock(was_active) = reply else {
                return Err(StoreError::mismatched_reply().into());
            };
            let any = was_active.contains(&true);
            let at = self.clock.now();
            let ended = keys.into_iter().zip(was_active).filter(|(_, was_active)| *was_active);
            ended.for_each(|(subject, _)| events.push(Event::Unblocked { at, subject }));
            Ok(any)
        })
    }

    /// Clears all state of keys.
    pub(crate) fn reset_exchange(&self, keys: Vec<SubjectKey>) -> impl Exchange<Answer = ()> {
        let batch = Batch::Reset(self.keys_with_counters(&keys));
        OneBatch::new(batch, move |_, events: &mut Events| {
            let at = self.clock.now();
            keys.into_iter().for_each(|subject| events.push(Event::Reset { at, subject }));
            Ok(())
        })
    }

    /// The keys, and those of the counters that tiers of their policies may have of their own.
    fn keys_with_counters(&self, keys: &[SubjectKey]) -> Vec<Key> {
        let rules = self.rules.load();
        let mut all = Vec::new();
        for subject in keys {
            all.push(subject.key);
            // Also of tiers without such a counter now: a change of facts can give them one.
            let tiers = rules.catalog.find(&subject.policy).map(|(_, policy)| &policy.tiers);
            let ids = tiers.into_iter().flatten().map(|tier| tier.id);
            all.extend(ids.map(|id| subject.key.with_tier(id)));
        }
        all
    }

    fn conclude_block(
        &self,
        keys: Vec<SubjectKey>,
        epoch: Time,
        proposal: &BlockProposal,
        reply: Reply,
        events: &mut Events,
    ) -> Result<BlockResult, Error> {
        let Reply::Block(blocks) = reply else {
            return Err(StoreError::mismatched_reply().into());
        };
        let now = self.clock.now();
        // A key without a block did not fit into its pool.
        let is_refused = blocks.contains(&None);
        let active = keys.into_iter().zip(blocks);
        let active = active.filter_map(|(subject, reply)| Some((subject, reply?)));
        let active: BlockResult = active.collect();
        let first_of_act = (active.len() > 1).then(|| active[0].0.key);
        for (subject, reply) in &active {
            let event = BlockEvent {
                subject: subject.clone(),
                epoch,
                first_of_act,
                block: Block {
                    origin: proposal.origin,
                    note: proposal.note.clone(),
                    ..reply.block.clone()
                },
            };
            events.push(Event::Blocked { at: now, block: Box::new(event) });
        }
        // The blocks that did start are reported above: they are active although the call fails.
        if is_refused { Err(StoreError::full("blocks").into()) } else { Ok(active) }
    }

    /// The keys under which a policy counts a subject.
    pub(crate) fn resolve_keys(
        &self,
        rules: &RuleSet,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<SubjectKey>, Refusal> {
        validate_storable("the namespace", namespace)?;
        let id = find_policy(rules, policy)?;
        let scope = self.scope(rules, namespace);
        let all = rules.selector().key_parts_of(id, subject)?;
        let keys = all.iter().map(|parts| SubjectKey {
            key: scope.key(policy, parts),
            namespace: namespace.to_owned(),
            policy: policy.to_owned(),
            parts: display_parts(&rules.catalog, &self.digester, parts),
        });
        Ok(keys.collect())
    }

    /// Sets facts about an attribute's value. They override the catalog's.
    pub fn state_facts(
        &self,
        attribute: &str,
        value: &str,
        facts: &[(&str, &str)],
    ) -> Result<(), Refusal> {
        validate_storable("the attribute's name", attribute)?;
        for (name, fact) in facts {
            validate_storable("the name of a fact", name)?;
            validate_storable(format_args!("the fact `{name}`"), fact)?;
        }
        self.update_rules(|rules| {
            let mut next = rules.clone();
            let clear = normalise(&rules.catalog, attribute, value)?;
            // Memory holds the value itself; the records hold the pseudonym of a private one.
            let about = self.digester.stored_value(attribute, &clear, false);
            for known in [&mut next.facts, &mut next.stated] {
                known.enable_pseudonym_lookup(&self.digester);
                known.merge_pseudonyms(attribute, &clear, &about);
            }
            for (name, fact) in facts {
                if rules.catalog.is_caller_attribute(name) {
                    return Err(caller_attribute_refusal(attribute, name));
                }
                // Into both: `facts` is used by decisions, and `stated` survives a reload of the
                // catalog.
                let stated = next.facts.insert_fact((attribute, &about), name, fact);
                stated.map_err(|owner| other_owner_refusal(name, &owner))?;
                let also_stated = next.stated.insert_fact((attribute, &about), name, fact);
                also_stated.map_err(|owner| other_owner_refusal(name, &owner))?;
            }
            Ok(next)
        })
    }

    /// Removes the facts set about a value. The catalog's own facts remain. Returns whether there
    /// were any.
    pub fn forget_facts(&self, attribute: &str, value: &str) -> Result<bool, Refusal> {
        let mut had = false;
        self.update_rules(|rules| {
            let about = normalise(&rules.catalog, attribute, value)?;
            let mut next = rules.clone();
            had = next.stated.forget(attribute, &about);
            // Builds `facts` again from the catalog and the remaining ones.
            Ok::<_, Refusal>(next.with_catalog(rules.catalog.clone()))
        })?;
        Ok(had)
    }
}

/// The keys alone: stores know no attributes.
fn keys_only(keys: &[SubjectKey]) -> Vec<Key> {
    keys.iter().map(|subject| subject.key).collect()
}

fn validate_proposal(proposal: &BlockProposal) -> Result<(), Refusal> {
    if proposal.penalty.length(0) == Span::ZERO {
        return Err(Refusal::ZeroBlockLength);
    }
    proposal.note.reason.as_deref().map_or(Ok(()), validate_reason)
}

fn caller_attribute_refusal(attribute: &str, name: &str) -> Refusal {
    let why = format!(
        "callers send the attribute `{name}`, so it cannot be a fact: calls that send it would all \
         be refused; choose another name for the fact"
    );
    Refusal::BadAttribute { attribute: attribute.to_owned(), why }
}

fn other_owner_refusal(name: &str, owner: &str) -> Refusal {
    let why = format!("the fact `{name}` already belongs to the attribute `{owner}`");
    Refusal::BadAttribute { attribute: owner.to_owned(), why }
}
