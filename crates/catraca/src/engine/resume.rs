//! Resume: applies the blocks, lists, facts, modes, debts and epochs of the records before the
//! first decision.
//!
//! Everything is applied as ordinary batches, so that any store can be resumed; state that only the
//! snapshot has is kept. A block is shortened only by a recorded release.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use catraca_core::batch::{Batch, BlockReply, ReconcileRow, Reply, UnblockRow};
use catraca_core::catalog::Catalog;
use catraca_core::cell::block::{Block, BlockProposal};
use catraca_core::digest::{Digester, Key};
use catraca_core::facts::FactSets;
use catraca_core::lists::AccessListEntry;
use catraca_core::policy::Mode;
use catraca_core::policy_epochs::PolicyEpochs;
use catraca_core::refusal::Refusal;
use catraca_core::time::Time;

use super::Engine;
#[cfg(feature = "shared")]
use super::local_changes::RecordsRead;
use crate::error::Error;
use crate::records::{ListName, Records, RecordsError, RestoredDebt, RestoredFact, RestoredItem};
#[cfg(feature = "shared")]
use crate::rule_set::RulePart;
use crate::rule_set::RuleSet;
use crate::store::{Store, When};

/// Keys in one batch, so that each shard is locked once for many of them.
const BATCH: usize = 256;

/// What was applied from the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResumeSummary {
    /// Active blocks.
    pub blocks: u64,
    /// Blocks for which the store had no room: worth an alarm.
    pub blocks_left_out: u64,
    /// The latest end of those.
    #[doc(hidden)]
    pub left_out_until: Time,
    /// Keys whose block an operator had released.
    pub freed: u64,
    /// Keys that an operator had reset.
    pub forgotten: u64,
    /// Entries of the allowlist and the blocklist.
    pub lists: u64,
    /// Facts.
    pub facts: u64,
    /// Facts that were ignored, because the catalog uses their name otherwise.
    pub facts_left_out: u64,
    /// Modes set by operators.
    pub modes: u64,
    /// Buckets in debt.
    pub debts: u64,
    /// Policies that were reset for all keys.
    pub resets: u64,
    /// Rows that the records had when the snapshot was written and have no more: worth an alarm.
    pub rows_missing: u64,
}

/// Why the records could not be applied. The engine must not decide then, or blocked callers would
/// pass.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The records could not be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The store did not apply them.
    #[error(transparent)]
    Store(#[from] Error),
    /// The store is bound to other records.
    #[error(
        "the store is bound to the records {theirs}, not to {ours}: nodes that share a store \
         must share records in PostgreSQL, or all set [records] scope = \"node\" over Redis; to \
         bind the store to these records, see \"Other records\" in docs/guide/shared.md"
    )]
    OtherRecords {
        /// The records given.
        ours: String,
        /// The records that the store is bound to.
        theirs: String,
    },
}

impl ResumeSummary {
    /// The latest end of the blocks for which the store had no room.
    pub fn left_out_until(&self) -> SystemTime {
        self.left_out_until.into()
    }
}

impl<S: Store> Engine<S> {
    /// Applies what the records contain; call it before the first check. `snapshot` is the instant
    /// at which the snapshot was begun from which the store was restored, if any.
    pub fn resume(
        &self,
        records: &Records,
        snapshot: Option<SystemTime>,
    ) -> Result<ResumeSummary, ResumeError> {
        records.bind_secret(&self.keys_id())?;
        let now = self.clock.now();
        let since = snapshot.map_or(Time::ZERO, Time::from);
        let catalog = Arc::clone(&self.rules.load().catalog);
        let mut batches = ResumeBatches::new(now, since, &catalog);
        let mut error = None;
        // At the instant for which the records were read, so that every block ends exactly when it
        // was recorded to end.
        let apply = |batches: &mut ResumeBatches, batch: Batch| {
            let reply = self.store.apply(&batch, When::At(now))?;
            batches.count_left_out(&batch, &reply);
            Ok::<_, Error>(())
        };
        // The visitor cannot return an error: the first one is kept until all records are read.
        records.restore(now, since, |item| {
            for batch in batches.add(item) {
                error = error.take().or_else(|| apply(&mut batches, batch).err());
            }
        })?;
        error.map_or(Ok(()), Err)?;
        for batch in batches.finish() {
            apply(&mut batches, batch)?;
        }
        // The catalog may have been changed while no process ran.
        drop(records.hide_values(now, &self.catalog(), &self.digester));
        Ok(self.conclude_resume(batches, |_| ()))
    }
}

impl<S> Engine<S> {
    /// Applies what is not in the store: lists, epochs, facts and modes. `complete` adds what the
    /// read may lack; no decision sees the rules without it. Returns the totals.
    pub(crate) fn conclude_resume(
        &self,
        batches: ResumeBatches,
        complete: impl FnOnce(&mut RuleSet),
    ) -> ResumeSummary {
        let mut summary = batches.summary;
        let changed = self.update_rules(|rules| {
            let (mut next, facts_left_out) = batches.into_rules(rules, &self.digester);
            summary.lists = (next.entries.0.len() + next.entries.1.len()) as u64;
            summary.facts_left_out += facts_left_out;
            complete(&mut next);
            Ok::<_, Refusal>(next)
        });
        debug_assert!(changed.is_ok(), "this change is never refused");
        summary
    }
}

#[cfg(feature = "shared")]
impl<S> Engine<S> {
    /// Concludes a read of shared records. Changes of this node that were not in them when the read
    /// began stay in force.
    pub(crate) fn conclude_read(
        &self,
        batches: ResumeBatches,
        read: &RecordsRead<'_>,
    ) -> ResumeSummary {
        self.conclude_resume(batches, |rules| {
            if read.apply_newer_changes(rules) {
                rules.rebuild(RulePart::Lists, &self.digester);
                rules.rebuild(RulePart::Facts, &self.digester);
                rules.rebuild(RulePart::Modes, &self.digester);
            }
        })
    }
}

/// Turns the items of the records into batches, and collects what is not in the store.
pub(crate) struct ResumeBatches {
    now: Time,
    since: Time,
    /// Blocks of the next batch.
    blocks: Vec<(Key, BlockProposal)>,
    /// Released keys of the next batch.
    freed: Vec<Key>,
    /// Reset keys of the next batch.
    forgotten: Vec<Key>,
    /// The ends that the blocks of released and reset keys would have had.
    #[cfg(feature = "shared")]
    ends: std::collections::HashMap<Key, Time>,
    /// The ids of all tiers of the catalog: each may have a counter of its own.
    tiers: BTreeSet<u32>,
    /// The run-time allowlist.
    allow: Vec<AccessListEntry>,
    /// The run-time blocklist.
    block: Vec<AccessListEntry>,
    facts: FactSets,
    modes: Vec<(String, Mode)>,
    epochs: PolicyEpochs,
    summary: ResumeSummary,
}

impl ResumeBatches {
    /// `now` must be by the clock with which the ends of blocks were made. Debts from before
    /// `since` are skipped.
    pub fn new(now: Time, since: Time, catalog: &Catalog) -> Self {
        let tiers = catalog.policies.iter().flat_map(|policy| &policy.tiers);
        Self {
            now,
            since,
            blocks: Vec::new(),
            freed: Vec::new(),
            forgotten: Vec::new(),
            #[cfg(feature = "shared")]
            ends: Default::default(),
            tiers: tiers.map(|tier| tier.id).collect(),
            allow: Vec::new(),
            block: Vec::new(),
            facts: FactSets::default(),
            modes: Vec::new(),
            epochs: PolicyEpochs::default(),
            summary: ResumeSummary::default(),
        }
    }

    /// Adds one item; returns the batches to apply now.
    pub fn add(&mut self, item: RestoredItem) -> Vec<Batch> {
        #[cfg(feature = "shared")]
        if let RestoredItem::Released(key, Some(end)) | RestoredItem::ResetKey(key, Some(end)) =
            item
        {
            self.ends.insert(key, end);
        }
        match item {
            RestoredItem::Block(key, block) => return self.add_block(key, block),
            RestoredItem::Released(key, _) => return self.add_release(key),
            RestoredItem::ResetKey(key, _) => return self.add_reset(key),
            RestoredItem::Debt(debt) => return self.add_debt(&debt),
            RestoredItem::List(ListName::Allow, entry) => self.allow.push(entry),
            RestoredItem::List(ListName::Block, entry) => self.block.push(entry),
            RestoredItem::Fact(fact) => self.add_fact(&fact),
            RestoredItem::Mode(policy, mode, _) => {
                self.modes.push((policy, mode));
                self.summary.modes += 1;
            }
            RestoredItem::ResetPolicy(reset) => {
                self.epochs.advance(&reset.policy, reset.epoch);
                self.summary.resets += 1;
            }
        }
        Vec::new()
    }

    /// The remaining, partly filled batches, in order.
    pub fn finish(&mut self) -> Vec<Batch> {
        self.take_released().into_iter().chain(self.take_blocks()).collect()
    }

    /// These rules with the lists, facts and modes of the records, and the later of each policy's
    /// epochs. Also returns how many facts the catalog does not allow.
    fn into_rules(mut self, rules: &RuleSet, digester: &Digester) -> (RuleSet, u64) {
        self.facts.enable_pseudonym_lookup(digester);
        let mut next = RuleSet { stated: self.facts, overrides: Vec::new(), ..rules.clone() };
        for (policy, mode) in self.modes {
            next.set_override(&policy, Some(mode));
        }
        let next = next.with_epochs(&self.epochs).with_lists(self.allow, self.block, digester);
        next.with_catalog_counting(Arc::clone(&rules.catalog))
    }

    /// A batch for a store that has lost a release and that other nodes use: ends only the block
    /// that was released, not one that was started since. A reset is only a release: the store has
    /// counted again.
    #[cfg(feature = "shared")]
    pub fn limit_releases(&self, batch: Batch) -> Batch {
        let end_of = |key: Key| self.ends.get(&key).copied();
        let row = |key: Key| Some(UnblockRow { key, only_until: Some(end_of(key)?) });
        match batch {
            Batch::Unblock(rows) => {
                Batch::Unblock(rows.into_iter().filter_map(|freed| row(freed.key)).collect())
            }
            Batch::Reset(keys) => Batch::Unblock(keys.into_iter().filter_map(row).collect()),
            other => other,
        }
    }

    /// Counts the blocks for which the store had no room.
    pub fn count_left_out(&mut self, batch: &Batch, reply: &Reply) {
        let (Batch::Block(rows), Reply::Block(stored)) = (batch, reply) else { return };
        let wanted = rows.iter().map(|(_, proposal)| self.now.after(proposal.penalty.length(0)));
        let until = |reply: &BlockReply| reply.block.until;
        let stored = stored.iter().map(|reply| reply.as_ref().map_or(self.now, until));
        // The later end wins in a store, so an earlier end means that the block was not stored.
        let stored_and_wanted = stored.zip(wanted);
        for (_, wanted) in stored_and_wanted.filter(|(stored, wanted)| stored < wanted) {
            self.summary.blocks_left_out += 1;
            self.summary.left_out_until = self.summary.left_out_until.max(wanted);
        }
    }

    /// Released keys are applied first: a key that was blocked again after its release must stay
    /// blocked.
    fn add_block(&mut self, key: Key, block: Block) -> Vec<Batch> {
        let mut ready = self.take_released();
        self.summary.blocks += u64::from(block.until > self.now);
        self.blocks.push((key, BlockProposal::restore(block, self.now)));
        if self.blocks.len() >= BATCH {
            ready.extend(self.take_blocks());
        }
        ready
    }

    fn add_release(&mut self, key: Key) -> Vec<Batch> {
        self.freed.push(key);
        self.summary.freed += 1;
        self.released_if_full()
    }

    fn add_reset(&mut self, key: Key) -> Vec<Batch> {
        self.forgotten.push(key);
        // The records know only the key, so the counters of all tiers are cleared.
        self.forgotten.extend(self.tiers.iter().map(|tier| key.with_tier(*tier)));
        self.summary.forgotten += 1;
        self.released_if_full()
    }

    fn released_if_full(&mut self) -> Vec<Batch> {
        let enough = self.freed.len().max(self.forgotten.len()) >= BATCH;
        if enough { self.take_released() } else { Vec::new() }
    }

    fn take_released(&mut self) -> Vec<Batch> {
        let freed = std::mem::take(&mut self.freed);
        let forgotten = std::mem::take(&mut self.forgotten);
        let mut batches = Vec::new();
        if !freed.is_empty() {
            batches.push(Batch::Unblock(freed.into_iter().map(UnblockRow::from).collect()));
        }
        if !forgotten.is_empty() {
            batches.push(Batch::Reset(forgotten));
        }
        batches
    }

    fn take_blocks(&mut self) -> Option<Batch> {
        let rows = std::mem::take(&mut self.blocks);
        (!rows.is_empty()).then_some(Batch::Block(rows))
    }

    /// A recorded value is normalised already, or a pseudonym: it must not be normalised again.
    fn add_fact(&mut self, restored: &RestoredFact) {
        let RestoredFact { namespace, about, name, fact } = restored;
        let facts = self.facts.of_mut(namespace.as_deref());
        match facts.insert_fact((&about.attribute, &about.value), name, fact) {
            Ok(()) => self.summary.facts += 1,
            Err(_) => self.summary.facts_left_out += 1,
        }
    }

    /// A debt from before the snapshot is already in it, and may have been repaid there. Pending
    /// resets go first: applied after the debt, they would clear it.
    fn add_debt(&mut self, debt: &RestoredDebt) -> Vec<Batch> {
        let mut ready = self.take_released();
        if debt.at >= self.since {
            let row = ReconcileRow {
                key: debt.key,
                terms: debt.terms,
                // The records do not know the tiers; the next charge does.
                shared: None,
                available: debt.balance,
                observed_at: debt.at,
            };
            self.summary.debts += 1;
            ready.push(Batch::Reconcile(vec![row]));
        }
        ready
    }
}
