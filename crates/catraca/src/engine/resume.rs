//! Resuming: what the records say is in force again before the first answer.
//!
//! Everything goes through the store's own language, so that any store can be resumed, and what a
//! snapshot knows beyond the records stays. Must not shorten a block but by a release that was
//! recorded.

use std::sync::Arc;

use catraca_core::batch::{Batch, BlockRow, Past, ReconcileRow, Reply};
use catraca_core::cell::block::Act;
use catraca_core::digest::Key;
use catraca_core::facts::Facts;
use catraca_core::limit::Penalty;
use catraca_core::lists::Entry;
use catraca_core::policy::Mode;
use catraca_core::refusal::Refusal;
use catraca_core::resets::Resets;
use catraca_core::select::normalise;
use catraca_core::time::{Span, Time};

use super::Engine;
use crate::error::Error;
use crate::records::{
    About, ListName, Records, RecordsError, Standing, StandingBlock, StandingDebt, known_as,
};
use crate::store::{Store, When};
use crate::world::World;

/// Keys in one batch: one lock per shard for many of them.
const BATCH: usize = 256;

/// What was put in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Blocks.
    pub blocks: u64,
    /// Blocks that the store has no room for: worth an alarm.
    pub blocks_left_out: u64,
    /// When the last of those would have ended.
    pub left_out_until: Time,
    /// Keys that an operator had freed.
    pub freed: u64,
    /// Keys that an operator had reset.
    pub forgotten: u64,
    /// Entries of both lists.
    pub lists: u64,
    /// Facts.
    pub facts: u64,
    /// Facts that the catalog no longer has a place for.
    pub facts_left_out: u64,
    /// Overridden modes.
    pub modes: u64,
    /// Debts.
    pub debts: u64,
    /// Policies that were reset for everybody.
    pub resets: u64,
}

/// Why the records were not put in force. The engine must not answer then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The records could not be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The store did not take them.
    #[error(transparent)]
    Store(#[from] Error),
    /// The store is in use with other records.
    #[error(
        "the store belongs to the records {theirs}, and these are {ours}: nodes that share a store \
         must share records in PostgreSQL; to give the store to these records, see \
         \"Other records\" in docs/guide/shared.md"
    )]
    OtherRecords {
        /// The records given.
        ours: String,
        /// The records of the store.
        theirs: String,
    },
}

impl<S: Store> Engine<S> {
    /// Puts in force what the records say; call it before the first check. `snapshot` is when the
    /// snapshot that the store was restored from was begun, if there was one.
    pub fn resume(
        &self,
        records: &Records,
        snapshot: Option<Time>,
    ) -> Result<Resumed, ResumeError> {
        records.tie(&self.keys_id())?;
        let (now, since) = (self.clock.now(), snapshot.unwrap_or(Time::ZERO));
        let mut resuming = Resuming::new(now, since);
        let mut failed = None;
        // At the instant that the records are asked about, so that every end is exact.
        let apply = |resuming: &mut Resuming, batch: Batch| {
            let reply = self.store.apply(&batch, When::At(now))?;
            resuming.took(&batch, &reply);
            Ok::<_, Error>(())
        };
        records.standing(now, since, |standing| {
            for batch in resuming.take(standing) {
                failed = failed.take().or_else(|| apply(&mut resuming, batch).err());
            }
        })?;
        failed.map_or(Ok(()), Err)?;
        for batch in resuming.rest() {
            apply(&mut resuming, batch)?;
        }
        Ok(self.resumed(resuming))
    }
}

impl<S> Engine<S> {
    /// Puts these run-time lists in force in place of the ones before. Values of private attributes
    /// are given as pseudonyms, which is how the records keep them.
    pub fn set_lists(&self, allow: Vec<Entry>, block: Vec<Entry>) {
        let changed = self.change(|world| Ok::<_, Refusal>(world.with_lists(allow, block)));
        debug_assert!(changed.is_ok(), "nothing in it can be refused");
    }

    /// The names under which the records know a real value: ask for these, and a private value is
    /// found without ever being kept.
    pub fn known_as(&self, attribute: &str, raw: &str) -> Result<Vec<About>, Refusal> {
        known_as(&self.world().catalog, self.digester(), attribute, raw)
    }

    /// The name under which a real value may be written down, private or not.
    pub fn pseudonym(&self, attribute: &str, raw: &str) -> Result<String, Refusal> {
        let clear = normalise(&self.world().catalog, attribute, raw)?;
        Ok(self.digester().pseudonym(attribute, &clear))
    }

    /// Puts in force what needs no store; says what was found in all.
    pub(crate) fn resumed(&self, mut resuming: Resuming) -> Resumed {
        let lists = resuming.allow.len() + resuming.block.len();
        resuming.done.lists = lists as u64;
        self.set_lists(resuming.allow, resuming.block);
        self.note_resets(&resuming.resets);
        if resuming.done.facts > 0 {
            resuming.facts.know_pseudonyms(&self.digester);
        }
        let left_out = self.restate(resuming.facts, resuming.modes);
        resuming.done.facts_left_out += left_out;
        resuming.done
    }

    /// What this node did meanwhile stays: an epoch never goes back.
    fn note_resets(&self, resets: &Resets) {
        let changed = self.change(|world| Ok::<_, Refusal>(world.with_resets(resets)));
        debug_assert!(changed.is_ok(), "nothing in it can be refused");
    }

    /// Puts facts and modes in force; says how many facts the catalog has no place for.
    fn restate(&self, stated: Facts, modes: Vec<(String, Mode)>) -> u64 {
        let mut left_out = 0;
        let changed = self.change(|world| {
            let bare = World { stated, overrides: Vec::new(), ..world.clone() };
            let (mut next, waiting) = bare.over(Arc::clone(&world.catalog));
            left_out = waiting;
            for (policy, mode) in modes {
                next = next.with_mode(&policy, Some(mode));
            }
            Ok::<_, Refusal>(next)
        });
        debug_assert!(changed.is_ok(), "nothing in it can be refused");
        left_out
    }
}

/// What was read of the records so far: batches come out, and what needs no store is kept.
pub(crate) struct Resuming {
    now: Time,
    since: Time,
    blocks: Vec<BlockRow>,
    freed: Vec<Key>,
    forgotten: Vec<Key>,
    allow: Vec<Entry>,
    block: Vec<Entry>,
    facts: Facts,
    modes: Vec<(String, Mode)>,
    resets: Resets,
    done: Resumed,
}

impl Resuming {
    /// `now` is by the clock that the ends of blocks were made with.
    pub fn new(now: Time, since: Time) -> Self {
        Self {
            now,
            since,
            blocks: Vec::new(),
            freed: Vec::new(),
            forgotten: Vec::new(),
            allow: Vec::new(),
            block: Vec::new(),
            facts: Facts::default(),
            modes: Vec::new(),
            resets: Resets::default(),
            done: Resumed::default(),
        }
    }

    /// Takes one thing that is in force; gives the batches that are due.
    pub fn take(&mut self, standing: Standing) -> Vec<Batch> {
        match standing {
            Standing::Block(block) => return self.block(block),
            Standing::Free(key) => return self.free(key),
            Standing::Forgotten(key) => return self.forget(key),
            Standing::Debt(debt) => return self.debt(&debt),
            Standing::List(ListName::Allow, entry) => self.allow.push(entry),
            Standing::List(ListName::Block, entry) => self.block.push(entry),
            Standing::Fact(about, name, fact) => self.fact(&about, &name, &fact),
            Standing::Mode(policy, mode) => {
                self.modes.push((policy, mode));
                self.done.modes += 1;
            }
            Standing::Reset(reset) => {
                self.resets.note(&reset.policy, reset.epoch);
                self.done.resets += 1;
            }
        }
        Vec::new()
    }

    /// The batches that are not full, in order.
    pub fn rest(&mut self) -> Vec<Batch> {
        self.all_freed().into_iter().chain(self.all_blocks()).collect()
    }

    /// Counts what the store had no room for.
    pub fn took(&mut self, batch: &Batch, reply: &Reply) {
        let (Batch::Block(rows), Reply::Block(standing)) = (batch, reply) else { return };
        let wanted = rows.iter().map(|row| self.now.after(row.act.penalty.length(0)));
        for (_, wanted) in standing.iter().zip(wanted).filter(|(is, wanted)| is.until < *wanted) {
            self.done.blocks_left_out += 1;
            self.done.left_out_until = self.done.left_out_until.max(wanted);
        }
    }

    /// Freed keys come first: one that was blocked again must stay so.
    fn block(&mut self, block: StandingBlock) -> Vec<Batch> {
        let mut due = self.all_freed();
        self.done.blocks += u64::from(block.until > self.now);
        self.blocks.push(self.told_again(block));
        if self.blocks.len() >= BATCH {
            due.extend(self.all_blocks());
        }
        due
    }

    fn told_again(&self, block: StandingBlock) -> BlockRow {
        let penalty = Penalty::fixed(block.until.since(self.now));
        let over = self.now.since(block.until).micros();
        let forget = Span::from_micros(block.forget.micros() - over);
        let past = (block.level > 0).then_some(Past { level: block.level, forget });
        let act = Act { penalty, origin: block.origin, shadow: block.shadow, note: block.note };
        BlockRow { key: block.key, act, past }
    }

    fn free(&mut self, key: Key) -> Vec<Batch> {
        self.freed.push(key);
        self.done.freed += 1;
        self.enough_freed()
    }

    fn forget(&mut self, key: Key) -> Vec<Batch> {
        self.forgotten.push(key);
        self.done.forgotten += 1;
        self.enough_freed()
    }

    fn enough_freed(&mut self) -> Vec<Batch> {
        let enough = self.freed.len().max(self.forgotten.len()) >= BATCH;
        if enough { self.all_freed() } else { Vec::new() }
    }

    fn all_freed(&mut self) -> Vec<Batch> {
        let freed = Batch::Unblock(std::mem::take(&mut self.freed));
        let forgotten = Batch::Reset(std::mem::take(&mut self.forgotten));
        let has_keys = |batch: &Batch| match batch {
            Batch::Unblock(keys) | Batch::Reset(keys) => !keys.is_empty(),
            _ => false,
        };
        [freed, forgotten].into_iter().filter(has_keys).collect()
    }

    fn all_blocks(&mut self) -> Option<Batch> {
        let rows = std::mem::take(&mut self.blocks);
        (!rows.is_empty()).then_some(Batch::Block(rows))
    }

    /// What was kept is normalised, or a pseudonym: neither may be normalised again.
    fn fact(&mut self, about: &About, name: &str, fact: &str) {
        match self.facts.state((&about.attribute, &about.value), name, fact) {
            Ok(()) => self.done.facts += 1,
            Err(_) => self.done.facts_left_out += 1,
        }
    }

    /// What the snapshot knows is newer than a debt from before it; what was reset since is not.
    fn debt(&mut self, debt: &StandingDebt) -> Vec<Batch> {
        let mut due = self.all_freed();
        if debt.at >= self.since {
            let (available, observed_at) = (debt.balance, debt.at);
            let row = ReconcileRow { key: debt.key, terms: debt.terms, available, observed_at };
            self.done.debts += 1;
            due.push(Batch::Reconcile(vec![row]));
        }
        due
    }
}
