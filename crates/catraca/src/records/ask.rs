//! Questions to the records, and the errands that the writer runs for them.
//!
//! Reads have a connection of their own and never wait for a write. Must not be called on a
//! decision's way: these wait for the disk.

use std::path::Path;
use std::sync::mpsc;

use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::Records;
use super::error::{RecordsError, WriteError};
use super::port::{Purged, Swept, Writes};
use super::privacy::{Erased, Exported};
use super::record::{About, ListName};
use super::row::{
    AuditQuery, AuditRow, BlockQuery, BlockRow, Extent, FactPlace, FactRow, HistoryRow, ListRow,
    Page, RevisionRow, Standing, TopBlocked, Totals,
};

impl Records {
    /// Calls `visit` with everything in force: blocks, lists, facts, modes and debts, and with the
    /// keys that were freed since `since`, which is when the store's snapshot was begun.
    pub fn standing(
        &self,
        now: Time,
        since: Time,
        mut visit: impl FnMut(Standing),
    ) -> Result<(), RecordsError> {
        self.reads.standing(Extent::Everything, (now, since), &mut visit)
    }

    /// The same without blocks and debts: what another node's operators may have changed.
    pub fn changes(
        &self,
        now: Time,
        since: Time,
        mut visit: impl FnMut(Standing),
    ) -> Result<(), RecordsError> {
        self.reads.standing(Extent::Changes, (now, since), &mut visit)
    }

    /// Blocks that stand, newest first.
    pub fn blocks(&self, query: &BlockQuery, now: Time) -> Result<Page<BlockRow>, RecordsError> {
        self.reads.blocks(query, now)
    }

    /// The block of an id, whether it stands or not.
    pub fn block(&self, id: i64) -> Result<Option<BlockRow>, RecordsError> {
        self.reads.block(id)
    }

    /// The block of a key, whether it stands or not.
    pub fn block_of(&self, key: Key) -> Result<Option<BlockRow>, RecordsError> {
        self.reads.block_of(key)
    }

    /// Entries of a list that stand, newest first; only those older than the one of id `before`.
    pub fn lists(
        &self,
        list: ListName,
        before: Option<i64>,
        limit: u32,
        now: Time,
    ) -> Result<Page<ListRow, i64>, RecordsError> {
        self.reads.lists(list, before, limit, now)
    }

    /// Facts that were stated, in the order of attribute, value and name, from behind `after` on.
    pub fn facts(
        &self,
        after: Option<FactPlace>,
        limit: u32,
    ) -> Result<Page<FactRow, FactPlace>, RecordsError> {
        self.reads.facts(after, limit)
    }

    /// The acts of one block, oldest first.
    pub fn history(&self, id: i64) -> Result<Vec<HistoryRow>, RecordsError> {
        self.reads.history(id)
    }

    /// Audited acts, newest first.
    pub fn audit(&self, query: &AuditQuery) -> Result<Page<AuditRow, i64>, RecordsError> {
        self.reads.audit(query)
    }

    /// Catalogs that were in force, newest first.
    pub fn revisions(&self, limit: u32) -> Result<Vec<RevisionRow>, RecordsError> {
        self.reads.revisions(limit)
    }

    /// Whether callers needed a key when that was last recorded, by [`super::Deed::RequireKeys`].
    pub fn keys_required(&self) -> Result<bool, RecordsError> {
        self.reads.keys_required()
    }

    /// Decisions by policy, one per row, from the minute of `from` to before that of `to`.
    pub fn policies(&self, from: Time, to: Time) -> Result<Vec<Totals>, RecordsError> {
        self.reads.policies(from, to)
    }

    /// Decisions by action, one per decision, most first.
    pub fn actions(&self, from: Time, to: Time) -> Result<Vec<Totals>, RecordsError> {
        self.reads.actions(from, to)
    }

    /// Who was blocked most often since `from`, most first.
    pub fn top_blocked(&self, from: Time, limit: u32) -> Result<Vec<TopBlocked>, RecordsError> {
        self.reads.top_blocked(from, limit)
    }

    /// All that is known of a subject, by the names of [`super::known_as`].
    pub fn export(&self, about: &[About]) -> Result<Exported, RecordsError> {
        self.reads.export(about)
    }

    /// Deletes what is known of a subject, by the names of [`super::known_as`], and from the files
    /// too. What still protects somebody is kept and counted. Counters in the store are digests
    /// that lapse with their window.
    pub fn erase(&self, about: &[About], now: Time) -> Result<Erased, RecordsError> {
        let about = about.to_vec();
        self.errand(move |database| {
            let erased = database.erase(&about, now)?;
            database.scrub()?;
            Ok(erased)
        })
    }

    /// Ends blocks and deletes debts that whole resets have left, some at a time, and says whose;
    /// to be called again while there may be more. [`Records::purge`] does it too.
    pub fn sweep(&self, now: Time) -> Result<Swept, RecordsError> {
        self.errand(move |database| database.sweep(now))
    }

    /// Deletes what is over its time. What has ended is over without it: a purge that fails is
    /// counted, and changes no decision.
    pub fn purge(&self, now: Time) -> Result<Purged, RecordsError> {
        self.purged(now).inspect_err(|_| self.queue.counters.untended.add(1))
    }

    fn purged(&self, now: Time) -> Result<Purged, RecordsError> {
        let (retention, mut all) = (self.options.retention, Purged::default());
        while self.sweep(now)?.more {}
        loop {
            // One bounded errand after the other, so that blocks are not kept waiting.
            let some = self.errand(move |database| database.purge(now, &retention))?;
            if some.is_empty() {
                self.errand(|database| database.scrub())?;
                return Ok(all);
            }
            all.add(some);
        }
    }

    /// Ties the records to the secret that their keys are made with, by its fingerprint. Under
    /// another one nothing in them would be found again, so that is an error.
    pub(crate) fn tie(&self, id: &str) -> Result<(), RecordsError> {
        let ours = id.to_owned();
        let kept = self.errand(move |database| database.tie(&ours))?;
        if kept == id {
            return Ok(());
        }
        let secret = |id: &str| id.split(' ').next().map(str::to_owned);
        if secret(&kept) == secret(id) {
            return Err(RecordsError(format!(
                "their blocks are under keys {kept}, and these are {id}: give [store] `url` and \
                 `shard_by` back, or take other records; blocks would not be found again"
            )));
        }
        Err(RecordsError(format!(
            "they were made with the secret {kept}, and this is {id}: bring the old secret back; \
             to change it, put the new one above it in the same file"
        )))
    }

    /// Which records these are, wherever they are reached from: random, made once.
    pub fn identity(&self) -> Result<String, RecordsError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| RecordsError(error.to_string()))?;
        let id = format!("{:032x}", u128::from_le_bytes(bytes));
        self.errand(move |database| database.identify(&id))
    }

    /// Writes a copy to a file, which appears whole or not at all, while work goes on.
    pub fn backup(&self, to: &Path) -> Result<(), RecordsError> {
        self.reads.backup(to)
    }

    /// Looks at every page; says what is wrong, which is nothing for sound records.
    pub fn verify(&self) -> Result<Vec<String>, RecordsError> {
        self.reads.verify()
    }

    /// Waits until everything that was submitted is written, and the tally too.
    pub fn flush(&self) -> Result<(), RecordsError> {
        let counts = self.tally.take();
        if !counts.is_empty() {
            let record = super::Record::automatic(Time::ZERO, super::Deed::Count(counts));
            self.queue.submit(vec![record], None);
        }
        self.errand(|_| Ok(()))
    }

    fn errand<R: Send + 'static>(
        &self,
        errand: impl FnOnce(&mut dyn Writes) -> Result<R, WriteError> + Send + 'static,
    ) -> Result<R, RecordsError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.queue.send(Box::new(move |database| {
            // Whoever asked may have stopped listening.
            let _ = sender.send(errand(database));
        }));
        let ended = || RecordsError("the records were closed".to_owned());
        let answer = receiver.recv().map_err(|_| ended())?;
        answer.map_err(|error| RecordsError(error.to_string()))
    }
}
