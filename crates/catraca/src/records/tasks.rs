//! The tasks that the writer thread runs for callers, backups and checks.
//!
//! All calls here wait for the database, so decisions must not make them.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::SystemTime;

use catraca_core::time::Time;

use super::Records;
use super::ack::{Ack, Receipt};
use super::database::{Database, DatabaseResult, PurgeCounts, SweepResult};
use super::error::RecordsError;
use super::privacy::ErasureCounts;
use super::record::AttributeValue;
use super::sql::single_values::{IDENTITY, SECRET};
use super::sql::{privacy_rows, retention};
use super::sqlite::beside;
use super::writer::count_records;

/// How many copies of earlier rescues may exist.
const RESCUED_MAX: u32 = 100;

impl Records {
    /// Deletes the data about a subject, given by the values of [`super::stored_values_of`], also
    /// from the files. Active blocks, list entries and debts are retained and counted. Counters in
    /// the store are digests that expire with their window. With `within`, only the data of that
    /// namespace is deleted.
    pub fn erase(
        &self,
        about: &[AttributeValue],
        within: Option<&str>,
        now: impl Into<SystemTime>,
    ) -> Result<ErasureCounts, RecordsError> {
        self.erase_rows(about, within, now.into().into(), true)
    }

    /// As [`Self::erase`] on another node at `at`: facts are not erased, because nodes share them
    /// through the store. Acts after `at` stay, so that it may be repeated.
    #[cfg(feature = "shared")]
    pub(crate) fn erase_history(
        &self,
        about: &[AttributeValue],
        within: Option<&str>,
        at: Time,
    ) -> Result<ErasureCounts, RecordsError> {
        self.erase_rows(about, within, at, false)
    }

    fn erase_rows(
        &self,
        about: &[AttributeValue],
        within: Option<&str>,
        now: Time,
        facts: bool,
    ) -> Result<ErasureCounts, RecordsError> {
        let about = about.to_vec();
        let within = within.map(str::to_owned);
        self.run_on_writer(move |database| {
            let erased = privacy_rows::erase(database, &about, within.as_deref(), now, facts)?;
            database.truncate_wal()?;
            Ok(erased)
        })
    }

    /// Counts an act whose answer did not wait any longer for its records.
    #[cfg(feature = "shared")]
    pub(crate) fn count_unconfirmed(&self) {
        self.queue.counters.refused.add(1);
    }

    /// Resolves once the records that are queued now are written, so that a query sees them; while
    /// the database is unavailable, at once. Unlike [`Records::flush`] it blocks no thread.
    pub fn barrier(&self) -> Receipt {
        let (ack_sender, receipt) = Receipt::new();
        // Without the task, the sender is dropped, which resolves the receipt.
        if self.queue.status().1.is_none() {
            // Tasks and records are done in the order in which they were queued.
            self.queue.send(Box::new(|_| drop(ack_sender.send(Ack::Durable))));
        }
        receipt
    }

    /// Ends blocks and deletes debts from before policy resets, a bounded number. Call it again
    /// while there may be more. [`Records::purge`] does so.
    pub fn sweep(&self, now: impl Into<SystemTime>) -> Result<SweepResult, RecordsError> {
        let now = now.into().into();
        self.run_on_writer(move |database| retention::sweep(database, now))
    }

    /// Deletes data that is past its retention. Ended data has no effect anyway: a purge that fails
    /// changes no decision and is only counted.
    pub fn purge(&self, now: impl Into<SystemTime>) -> Result<PurgeCounts, RecordsError> {
        self.purge_all(now.into().into())
            .inspect_err(|_| self.queue.counters.maintenance_failures.add(1))
    }

    fn purge_all(&self, now: Time) -> Result<PurgeCounts, RecordsError> {
        let retention = self.options.retention;
        let mut total = PurgeCounts::default();
        while self.sweep(now)?.more {}
        loop {
            // Bounded tasks, so that block records between them do not wait long.
            let counts =
                self.run_on_writer(move |database| retention::purge(database, now, &retention))?;
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
        let stored =
            self.run_on_writer(move |database| SECRET.store_once(database, &id_to_store))?;
        compare_secrets(&stored, id)
    }

    /// Fails if the records are bound to another secret; writes nothing.
    #[cfg(feature = "shared")]
    pub(crate) fn check_secret(&self, id: &str) -> Result<(), RecordsError> {
        let stored = self.run_on_writer(|database| SECRET.load(database))?;
        stored.map_or(Ok(()), |stored| compare_secrets(&stored, id))
    }

    /// A random identity, made once: shows whether two nodes use the same records.
    pub fn identity(&self) -> Result<String, RecordsError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| RecordsError(error.to_string()))?;
        let id = format!("{:032x}", u128::from_le_bytes(bytes));
        self.run_on_writer(move |database| IDENTITY.store_once(database, &id))
    }

    /// Writes a copy to a new file, which appears complete or not at all; writes continue
    /// meanwhile.
    pub fn backup(&self, to: &Path) -> Result<(), RecordsError> {
        Ok(self.reads.lock().backup(to)?)
    }

    /// Writes a copy of records whose file was deleted, moved or replaced, beside its path. Returns
    /// the copy's path; nothing if the file is where it was. Call it after [`Records::stop`], so
    /// that the copy has everything.
    pub fn rescue(&self) -> Result<Option<PathBuf>, RecordsError> {
        let lost = self.path.as_ref().filter(|_| self.health().file_fault.is_some());
        let Some(path) = lost else { return Ok(None) };
        let numbered = (2..=RESCUED_MAX).map(|number| format!(".rescued-{number}"));
        let copies = std::iter::once(".rescued".to_owned()).chain(numbered);
        let mut copies = copies.map(|ending| beside(path, &ending));
        let copy = copies.find(|copy| !copy.exists());
        let copy = copy.unwrap_or_else(|| beside(path, ".rescued"));
        self.backup(&copy)?;
        Ok(Some(copy))
    }

    /// A number that grows with every block, list entry and audited act that is on disk, and never
    /// shrinks. A snapshot stores it, so that the next start notices if acknowledged acts are
    /// missing. Zero in PostgreSQL, whose files this program does not manage.
    pub fn sequence(&self) -> Result<u64, RecordsError> {
        let sequence = self.reads.lock().sequence();
        Ok(sequence.inspect_err(|_| self.queue.counters.maintenance_failures.add(1))?)
    }

    /// Checks every page. Returns the faults found; none if the records are sound.
    pub fn verify(&self) -> Result<Vec<String>, RecordsError> {
        Ok(self.reads.lock().verify()?)
    }

    /// Waits until all submitted records and the minute counts are written.
    pub fn flush(&self) -> Result<(), RecordsError> {
        let counts = count_records(&self.minute_counts, &self.key_counts);
        if !counts.is_empty() {
            self.queue.submit(counts, None);
        }
        self.run_on_writer(|_| Ok(()))
    }

    fn run_on_writer<R: Send + 'static>(
        &self,
        task: impl FnOnce(&mut dyn Database) -> DatabaseResult<R> + Send + 'static,
    ) -> Result<R, RecordsError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.queue.send(Box::new(move |database| {
            // The caller may have gone.
            let _ = sender.send(task(database));
        }));
        let closed = || RecordsError("the records are closed".to_owned());
        let answer = receiver.recv().map_err(|_| closed())?;
        Ok(answer?)
    }
}

/// Compares the secret to which records are bound with the present one.
fn compare_secrets(stored: &str, id: &str) -> Result<(), RecordsError> {
    if stored == id {
        return Ok(());
    }
    // The first word is the id of the secret; further words describe how keys are sharded.
    let secret = |id: &str| id.split(' ').next().map(str::to_owned);
    if secret(stored) == secret(id) {
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
