//! Operators' acts on keys: block, unblock and reset; and facts set at run time.

use catraca_core::batch::{ActiveBlock, Batch, BlockRow, Reply};
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::Penalty;
use catraca_core::plan::display_parts;
use catraca_core::refusal::Refusal;
use catraca_core::request::{DEFAULT_NAMESPACE, validate_reason, validate_storable};
use catraca_core::select::normalise;
use catraca_core::subject::Subject;
use catraca_core::time::{Span, Time};

use super::{Engine, find_policy};
use crate::error::Error;
use crate::event::{BlockEvent, Event};
use crate::rule_set::RuleSet;
use crate::settlement::BlockedKey;
use crate::store::{Store, StoreError, When};

/// An operator's order to block a subject.
#[derive(Clone, Debug)]
pub struct BlockOrder<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The policy.
    pub policy: &'a str,
    /// The subject to block.
    pub subject: Subject<'a>,
    /// The length of the block; [`Span::FOREVER`] for one without an end.
    pub span: Span,
    /// The reason, for operators.
    pub reason: Option<&'a str>,
}

/// A key, with its attributes and their values, private ones as pseudonyms.
pub(crate) type NamedKey = (Key, Vec<(String, String)>);
/// The keys that an order blocks, and the epoch of their policy.
pub(crate) type BlockTargets = (Vec<NamedKey>, Time);

impl<S: Store> Engine<S> {
    /// Blocks a subject under one policy. For an `each` policy, blocks every key of the subject.
    pub fn block(&self, order: &BlockOrder<'_>) -> Result<Vec<BlockedKey>, Error> {
        let rules = self.rules.load();
        let (keys, epoch) = self.block_targets(&rules, order)?;
        let reply = self.store.apply(&block_batch(order, &keys), When::Store)?;
        self.conclude_block(order, keys, epoch, reply)
    }

    /// Returns the refusal that [`Engine::block`] would return. Changes nothing.
    pub fn validate_block(&self, order: &BlockOrder<'_>) -> Result<(), Error> {
        Ok(self.block_targets(&self.rules.load(), order).map(drop)?)
    }

    /// Returns the refusal that [`Engine::unblock`] and [`Engine::reset`] would return. Changes
    /// nothing.
    pub fn validate_key_act(&self, policy: &str, subject: &Subject<'_>) -> Result<(), Error> {
        Ok(self.resolve_keys(&self.rules.load(), DEFAULT_NAMESPACE, policy, subject).map(drop)?)
    }

    /// Ends the blocks of a subject under one policy. Returns whether any was active.
    pub fn unblock(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<bool, Error> {
        let keys = self.resolve_keys(&self.rules.load(), namespace, policy, subject)?;
        let reply = self.store.apply(&Batch::Unblock(keys_only(&keys)), When::Store)?;
        self.conclude_unblock(namespace, policy, keys, reply)
    }

    /// Clears counters, block, level and ban counts of a subject under one policy.
    pub fn reset(&self, namespace: &str, policy: &str, subject: &Subject<'_>) -> Result<(), Error> {
        let keys = self.resolve_keys(&self.rules.load(), namespace, policy, subject)?;
        self.store.apply(&Batch::Reset(keys_only(&keys)), When::Store)?;
        self.emit_reset(namespace, policy, keys);
        Ok(())
    }
}

impl<S> Engine<S> {
    pub(crate) fn block_targets(
        &self,
        rules: &RuleSet,
        order: &BlockOrder<'_>,
    ) -> Result<BlockTargets, Refusal> {
        if order.span == Span::ZERO {
            return Err(Refusal::ZeroBlockLength);
        }
        order.reason.map_or(Ok(()), validate_reason)?;
        let keys = self.resolve_keys(rules, order.namespace, order.policy, &order.subject)?;
        Ok((keys, rules.epoch(order.policy)))
    }

    /// Emits an event per block and returns the active blocks.
    pub(crate) fn conclude_block(
        &self,
        order: &BlockOrder<'_>,
        keys: Vec<NamedKey>,
        epoch: Time,
        reply: Reply,
    ) -> Result<Vec<BlockedKey>, Error> {
        let Reply::Block(blocks) = reply else {
            return Err(StoreError::mismatched_reply().into());
        };
        let now = self.clock.now();
        // A block that did not fit into its pool is neither changed nor active.
        let is_active = |one: &ActiveBlock| one.changed || one.until > now;
        let refused = !blocks.iter().all(is_active);
        let all = keys.into_iter().zip(blocks).filter(|(_, block)| is_active(block));
        let all = all.map(|((key, parts), block)| {
            let until = block.until;
            self.emit(&Event::Blocked(BlockEvent {
                at: self.clock.now(),
                namespace: order.namespace.to_owned(),
                key,
                epoch,
                policy: order.policy.to_owned(),
                parts: parts.clone(),
                until,
                origin: Origin::Operator,
                note: operator_proposal(order).note,
                shadow: false,
                forget: Span::ZERO,
            }));
            BlockedKey { key, parts, until, origin: block.origin, changed: block.changed }
        });
        let done = all.collect();
        // The events of the blocks that did start are emitted above: those blocks are active even
        // though the call fails.
        if refused { Err(StoreError::full("blocks").into()) } else { Ok(done) }
    }

    /// Emits an event per ended block. Returns whether any was active.
    pub(crate) fn conclude_unblock(
        &self,
        namespace: &str,
        policy: &str,
        keys: Vec<NamedKey>,
        reply: Reply,
    ) -> Result<bool, Error> {
        let Reply::Unblock(was_active) = reply else {
            return Err(StoreError::mismatched_reply().into());
        };
        let any = was_active.contains(&true);
        for ((key, parts), _) in
            keys.into_iter().zip(was_active).filter(|(_, was_active)| *was_active)
        {
            let at = self.clock.now();
            self.emit(&Event::Unblocked { at, namespace, key, policy, parts });
        }
        Ok(any)
    }

    pub(crate) fn emit_reset(&self, namespace: &str, policy: &str, keys: Vec<NamedKey>) {
        for (key, parts) in keys {
            let at = self.clock.now();
            self.emit(&Event::Reset { at, namespace, key, policy, parts });
        }
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
            let about = normalise(&rules.catalog, attribute, value)?;
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

    pub(crate) fn resolve_keys(
        &self,
        rules: &RuleSet,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<NamedKey>, Refusal> {
        validate_storable("the namespace", namespace)?;
        let id = find_policy(rules, policy)?;
        let scope = self.scope(rules, namespace);
        let all = rules.selector().key_parts_of(id, subject)?;
        let keys = all.iter().map(|parts| {
            (scope.key(policy, parts), display_parts(&rules.catalog, &self.digester, parts))
        });
        Ok(keys.collect())
    }
}

/// The batch that blocks the keys of an order.
pub(crate) fn block_batch(order: &BlockOrder<'_>, keys: &[NamedKey]) -> Batch {
    let act = operator_proposal(order);
    Batch::Block(keys.iter().map(|(key, _)| BlockRow::new(*key, act.clone())).collect())
}

/// The keys alone: stores know no attributes.
pub(crate) fn keys_only(keys: &[NamedKey]) -> Vec<Key> {
    keys.iter().map(|(key, _)| *key).collect()
}

fn operator_proposal(order: &BlockOrder<'_>) -> BlockProposal {
    let note = BlockNote { reason: order.reason.map(Into::into), ..BlockNote::default() };
    BlockProposal {
        penalty: Penalty::without_escalation(order.span),
        origin: Origin::Operator,
        shadow: false,
        note,
    }
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
