//! Queries of the records, and the tasks that the writer thread runs for callers.
//!
//! Reads have a connection of their own and never wait for a write. All calls here wait for the
//! database, so decisions must not make them.

use std::path::Path;
use std::sync::mpsc;

use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::Records;
use super::database::{DatabaseWriter, PurgeCounts, SweepResult};
use super::error::{RecordsError, WriteError};
use super::privacy::{ErasureCounts, SubjectExport};
use super::record::{AttributeValue, ListName};
use super::row::{
    AuditQuery, AuditRow, BlockQuery, BlockRow, FactCursor, FactRow, HistoryRow, ListRow, Page,
    RestoreScope, RestoredItem, RevisionRow, TopBlocked, Totals,
};

impl Records {
    /// Calls `visit` with all active blocks, lists, facts, modes and debts, and with the keys that
    /// were freed since `since`, the time at which the store's snapshot was begun.
    pub fn restore(
        &self,
        now: Time,
        since: Time,
        mut visit: impl FnMut(RestoredItem),
    ) -> Result<(), RecordsError> {
        self.reads.restore(RestoreScope::Everything, now, since, &mut visit)
    }

    /// Like [`Records::restore`] without blocks and debts: the changes that operators may have made
    /// on another node.
    pub fn restore_changes(
        &self,
        now: Time,
        since: Time,
        mut visit: impl FnMut(RestoredItem),
    ) -> Result<(), RecordsError> {
        self.reads.restore(RestoreScope::Changes, now, since, &mut visit)
    }

    /// Active blocks, newest first.
    pub fn blocks(&self, query: &BlockQuery, now: Time) -> Result<Page<BlockRow>, RecordsError> {
        self.reads.blocks(query, now)
    }

    /// The block with this id, active or ended.
    pub fn block(&self, id: i64) -> Result<Option<BlockRow>, RecordsError> {
        self.reads.block(id)
    }

    /// The block of a key, active or ended.
    pub fn block_of(&self, key: Key) -> Result<Option<BlockRow>, RecordsError> {
        self.reads.block_of(key)
    }

    /// Active entries of a list, newest first, with ids below `before`.
    pub fn lists(
        &self,
        list: ListName,
        before: Option<i64>,
        limit: u32,
        now: Time,
    ) -> Result<Page<ListRow, i64>, RecordsError> {
        self.reads.lists(list, before, limit, now)
    }

    /// Facts in the order of attribute, value and name, after the position `after`.
    pub fn facts(
        &self,
        after: Option<FactCursor>,
        limit: u32,
    ) -> Result<Page<FactRow, FactCursor>, RecordsError> {
        self.reads.facts(after, limit)
    }

    /// The history of one block, oldest first.
    pub fn history(&self, id: i64) -> Result<Vec<HistoryRow>, RecordsError> {
        self.reads.history(id)
    }

    /// Audited actions, newest first.
    pub fn audit(&self, query: &AuditQuery) -> Result<Page<AuditRow, i64>, RecordsError> {
        self.reads.audit(query)
    }

    /// Loaded catalogs, newest first.
    pub fn revisions(&self, limit: u32) -> Result<Vec<RevisionRow>, RecordsError> {
        self.reads.revisions(limit)
    }

    /// Whether callers needed an API key when that was last recorded, by
    /// [`super::RecordKind::RequireKeys`].
    pub fn keys_required(&self) -> Result<bool, RecordsError> {
        self.reads.keys_required()
    }

    /// Decisions by policy, from the minute of `from` up to the minute of `to`, exclusive. A
    /// decision counts once for each of its policies.
    pub fn policies(&self, from: Time, to: Time) -> Result<Vec<Totals>, RecordsError> {
        self.reads.policies(from, to)
    }

    /// Decisions by action, most first. A decision counts once.
    pub fn actions(&self, from: Time, to: Time) -> Result<Vec<Totals>, RecordsError> {
        self.reads.actions(from, to)
    }

    /// Subjects by number of blocks since `from`, most first.
    pub fn top_blocked(&self, from: Time, limit: u32) -> Result<Vec<TopBlocked>, RecordsError> {
        self.reads.top_blocked(from, limit)
    }

    /// All data about a subject, given by the values of [`super::stored_values_of`].
    pub fn export(&self, about: &[AttributeValue]) -> Result<SubjectExport, RecordsError> {
        self.reads.export(about)
    }

    /// Deletes the data about a subject, given by the values of [`super::stored_values_of`], also
    /// from the files. Active blocks, list entries and debts are retained and counted. Counters in
    /// the store are digests that expire with their window.
    pub fn erase(
        &self,
        about: &[AttributeValue],
        now: Time,
    ) -> Result<ErasureCounts, RecordsError> {
        let about = about.to_vec();
        self.run_on_writer(move |database| {
            let erased = database.erase(&about, now)?;
            database.truncate_wal()?;
            Ok(erased)
        })
    }

    /// Ends blocks and deletes debts from before policy resets, a bounded number. Call it again
    /// while there may be more. [`Records::purge`] does so.
    pub fn sweep(&self, now: Time) -> Result<SweepResult, RecordsError> {
        self.run_on_writer(move |database| database.sweep(now))
    }

    /// Deletes data that is past its retention. Ended data has no effect anyway: a purge that fails
    /// changes no decision and is only counted.
    pub fn purge(&self, now: Time) -> Result<PurgeCounts, RecordsError> {
        self.purge_all(now).inspect_err(|_| self.queue.counters.maintenance_failures.add(1))
    }

    fn purge_all(&self, now: Time) -> Result<PurgeCounts, RecordsError> {
        let retention = self.options.retention;
        let mut total = PurgeCounts::default();
        while self.sweep(now)?.more {}
        loop {
            // Bounded tasks, so that block records between them do not wait long.
            let counts = self.run_on_writer(move |database| database.purge(now, &retention))?;
            if counts.is_empty() {
                self.run_on_writer(|database| database.truncate_wal())?;
                return Ok(total);
            }
            total.add(counts);
        }
    }

    /// Binds the records to the secret that their keys are derived from, by its fingerprint. With
    /// another secret no key would be found again, so a mismatch is an error.
    pub(crate) fn bind_secret(&self, id: &str) -> Result<(), RecordsError> {
        let id_to_store = id.to_owned();
        let stored = self.run_on_writer(move |database| database.bind_secret(&id_to_store))?;
        if stored == id {
            return Ok(());
        }
        // The first word is the id of the secret; further words describe how keys are sharded.
        let secret = |id: &str| id.split(' ').next().map(str::to_owned);
        if secret(&stored) == secret(id) {
            return Err(RecordsError(format!(
                "they were written with the key layout {stored}, and the present one is {id}, so \
                 blocks would not be found: restore [store] `url` and `shard_by`, or use other \
                 records"
            )));
        }
        Err(RecordsError(format!(
            "they were written with the secret {stored}, and the present one is {id}, so keys \
             would not be found: bring the old secret back; to change it, put the new one above \
             it in the same file"
        )))
    }

    /// A random identity, made once: shows whether two nodes use the same records.
    pub fn identity(&self) -> Result<String, RecordsError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| RecordsError(error.to_string()))?;
        let id = format!("{:032x}", u128::from_le_bytes(bytes));
        self.run_on_writer(move |database| database.identify(&id))
    }

    /// Writes a copy to a new file, which appears complete or not at all; writes continue
    /// meanwhile.
    pub fn backup(&self, to: &Path) -> Result<(), RecordsError> {
        self.reads.backup(to)
    }

    /// Checks every page. Returns the faults found; none if the records are sound.
    pub fn verify(&self) -> Result<Vec<String>, RecordsError> {
        self.reads.verify()
    }

    /// Waits until all submitted records and the minute counts are written.
    pub fn flush(&self) -> Result<(), RecordsError> {
        let counts = self.minute_counts.take();
        if !counts.is_empty() {
            let record = super::Record::automatic(Time::ZERO, super::RecordKind::Count(counts));
            self.queue.submit(vec![record], None);
        }
        self.run_on_writer(|_| Ok(()))
    }

    fn run_on_writer<R: Send + 'static>(
        &self,
        task: impl FnOnce(&mut dyn DatabaseWriter) -> Result<R, WriteError> + Send + 'static,
    ) -> Result<R, RecordsError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.queue.send(Box::new(move |database| {
            // The caller may have gone.
            let _ = sender.send(task(database));
        }));
        let closed = || RecordsError("the records are closed".to_owned());
        let answer = receiver.recv().map_err(|_| closed())?;
        answer.map_err(|error| RecordsError(error.to_string()))
    }
}
