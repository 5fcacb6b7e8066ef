//! Operators' acts on keys: block, unblock and reset.

use catraca_core::batch::{Batch, Reply, UnblockRow};
use catraca_core::cell::block::{Block, BlockProposal};
use catraca_core::digest::Key;
use catraca_core::plan::display_parts;
use catraca_core::refusal::Refusal;
use catraca_core::request::{DEFAULT_NAMESPACE, validate_reason, validate_storable};
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
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use catraca::{BlockProposal, Catalog, Engine, Subject};
    ///
    /// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?;
    /// let engine = Engine::new(catalog);
    /// let subject = Subject::from([("ip", "198.51.100.7")]);
    /// let proposal = BlockProposal::by_operator(Duration::from_secs(3_600), Some("abuse"));
    /// engine.block("default", "api", &subject, proposal)?;
    /// let api = engine.gate("api")?;
    /// assert_eq!(api.check(["198.51.100.7"])?.reason.as_str(), "blocked");
    /// assert!(engine.unblock("default", "api", &subject)?);
    /// assert!(api.check(["198.51.100.7"])?.allowed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        let rows = keys.into_iter().map(|key| (key, None)).collect();
        Ok(self.run(&mut self.unblock_exchange(rows))?.contains(&true))
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

    /// Ends the blocks of keys, each only if it has the given end. The answer is which were ended.
    pub(crate) fn unblock_exchange(
        &self,
        rows: Vec<(SubjectKey, Option<Time>)>,
    ) -> impl Exchange<Answer = Vec<bool>> {
        let batch = rows
            .iter()
            .map(|(subject, only_until)| UnblockRow { key: subject.key, only_until: *only_until });
        let batch = Batch::Unblock(batch.collect());
        OneBatch::new(batch, move |reply, events: &mut Events| {
            let Reply::Unblock(released) = reply else {
                return Err(StoreError::mismatched_reply().into());
            };
            let at = self.clock.now();
            let ended = rows.into_iter().zip(&released).filter(|(_, released)| **released);
            ended.for_each(|((subject, _), _)| events.push(Event::Unblocked { at, subject }));
            Ok(released)
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
        let all = rules.selector(namespace).key_parts_of(id, subject)?;
        let keys = all.iter().map(|parts| SubjectKey {
            key: scope.key(policy, parts),
            namespace: namespace.to_owned(),
            policy: policy.to_owned(),
            parts: display_parts(&rules.catalog, &self.digester, parts),
        });
        Ok(keys.collect())
    }
}

fn validate_proposal(proposal: &BlockProposal) -> Result<(), Refusal> {
    if proposal.penalty.length(0) == Span::ZERO {
        return Err(Refusal::ZeroBlockLength);
    }
    proposal.note.reason.as_deref().map_or(Ok(()), validate_reason)
}
