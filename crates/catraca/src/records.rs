//! Records: the durable, SQL-readable history of blocks, lists, facts, modes and operator actions.
//!
//! One writer thread commits records in transactions that many actions share. An action is
//! acknowledged once its transaction is on disk; decisions never wait for it. Private values are
//! stored as pseudonyms only. A damaged file is refused at start and never treated as empty.
//!
//! ```
//! use std::sync::Arc;
//!
//! use catraca::records::{Options, Records};
//! use catraca::{Catalog, Check, Engine, Secret};
//!
//! fn start(records: &Arc<Records>) -> Result<Engine, Box<dyn std::error::Error>> {
//!     let text = "[policy.login]\n by = ['ip']\n window = '1 per 1m'\n block = '1h'";
//!     let listener = Arc::clone(records);
//!     let engine = Engine::builder(Catalog::parse(text)?)
//!         .secret(Secret::from_bytes([7; 32])) // in earnest: random, and kept in a file
//!         .listener(move |event| listener.on_event(event))
//!         .build();
//!     engine.resume(records, None)?;
//!     Ok(engine)
//! }
//!
//! let file = std::env::temp_dir().join(format!("catraca-records-{}.db", std::process::id()));
//! let url = format!("sqlite:{}", file.display());
//! let check = Check::new("login", [("ip", "198.51.100.7")]);
//!
//! let records = Arc::new(Records::open(&url, Options::default())?);
//! let engine = start(&records)?;
//! assert!(engine.check(&check)?.allowed);
//! assert!(!engine.check(&check)?.allowed); // one too many: the block starts
//! drop(engine);
//! drop(records); // writes what is queued
//!
//! let records = Arc::new(Records::open(&url, Options::default())?);
//! assert_eq!(start(&records)?.check(&check)?.reason.as_str(), "blocked");
//! # drop(records);
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ack;
mod block_id;
mod database;
mod display;
mod error;
mod file_lock;
mod from_events;
mod health;
mod incomplete;
mod key_counts;
mod lock_rows;
mod minute_counts;
#[cfg(feature = "postgres")]
mod postgres;
mod privacy;
mod queue;
mod record;
mod row;
mod sql;
mod sqlite;
mod tasks;
mod text_interner;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;

use database::Database;
use file_lock::FileLock;
use key_counts::KeyCounts;
use minute_counts::MinuteCounts;
use queue::RecordQueue;
use writer::WriterThread;

#[cfg(feature = "shared")]
pub(crate) use display::pairs;

pub use crate::event::{BlockEvent, DebtEvent, SubjectKey};
pub use crate::url::{is_postgres, redact};
pub use ack::{Ack, Receipt};
pub use block_id::{BlockId, BlockIdParseError};
pub use database::{PurgeCounts, Retention, SweepResult};
pub use error::{OpenError, RecordsError};
pub use from_events::Operator;
pub use health::Health;
pub use incomplete::Incomplete;
pub use lock_rows::RecordedLock;
pub use privacy::{
    ErasureCounts, ExportedAttempts, ExportedEntry, ExportedFact, SubjectExport, stored_values_of,
};
pub use record::{
    AttributeValue, AuditNote, KeyCount, ListName, MinuteCount, PolicyReset, Record, RecordKind,
    Revision,
};
pub use row::{
    AuditQuery, AuditRow, BlockQuery, BlockRow, BlockStates, Cursor, CursorParseError, FactCursor,
    FactRow, HistoryRow, KeyAttempts, ListRow, PAGE_MAX, Page, RestoreScope, RestoredDebt,
    RestoredFact, RestoredItem, RevisionRow, TopBlocked, Totals,
};
pub use sqlite::{RestoredBackup, back_up, restore_backup, restore_backup_over};

/// Settings of the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How long each class of data is stored.
    pub retention: Retention,
    /// The most keys whose attempts are counted one by one in a minute; zero counts none. The
    /// engine must report keys ([`Builder::report_keys`](crate::Builder::report_keys)).
    pub keys_per_minute: usize,
}

/// An open records database. Dropping it writes the records that are still queued.
pub struct Records {
    queue: Arc<RecordQueue>,
    minute_counts: Arc<MinuteCounts>,
    key_counts: Arc<KeyCounts>,
    /// The connection of queries, which never wait for a write.
    reads: Mutex<Box<dyn Database>>,
    options: Options,
    thread: Mutex<Option<JoinHandle<u64>>>,
    /// The path of the file, in SQLite.
    path: Option<PathBuf>,
    /// SQLite only: keeps other processes from opening the same file. Dropped last, after the
    /// connections.
    _lock: Option<FileLock>,
}

impl Records {
    /// Opens the records of a URL such as `sqlite:catraca.db` or `postgres://ana@host/shop`, and
    /// creates them if they do not exist.
    pub fn open(url: &str, options: Options) -> Result<Self, OpenError> {
        if is_postgres(url) {
            return Self::open_postgres(url, options);
        }
        let path = url.strip_prefix("sqlite:").filter(|path| !path.is_empty());
        let path = Path::new(path.ok_or_else(|| OpenError::Url { url: redact(url) })?);
        let (lock, [writes, reads]) = sqlite::open(path)?;
        let mut records = Self::start(Box::new(writes), Box::new(reads), options, Some(lock))
            .map_err(|error| OpenError::io(path, &error))?;
        records.path = Some(path.to_owned());
        Ok(records)
    }

    /// Takes no file lock: several nodes may share one PostgreSQL database.
    #[cfg(feature = "postgres")]
    fn open_postgres(url: &str, options: Options) -> Result<Self, OpenError> {
        let [writes, reads] = postgres::open(url)?;
        Self::start(Box::new(writes), Box::new(reads), options, None)
            .map_err(|error| OpenError::io(Path::new("postgres:"), &error))
    }

    #[cfg(not(feature = "postgres"))]
    fn open_postgres(url: &str, _: Options) -> Result<Self, OpenError> {
        Err(OpenError::NotBuilt { url: redact(url) })
    }

    fn start(
        database: Box<dyn Database>,
        reads: Box<dyn Database>,
        options: Options,
        lock: Option<FileLock>,
    ) -> std::io::Result<Self> {
        let queue = Arc::new(RecordQueue::default());
        let minute_counts = Arc::new(MinuteCounts::new());
        let key_counts = Arc::new(KeyCounts::new(options.keys_per_minute));
        let writer = WriterThread {
            database,
            queue: Arc::clone(&queue),
            minute_counts: Arc::clone(&minute_counts),
            key_counts: Arc::clone(&key_counts),
        };
        let thread = std::thread::Builder::new().name("catraca-records".into());
        let thread = Mutex::new(Some(thread.spawn(|| writer.start())?));
        let reads = Mutex::new(reads);
        let path = None;
        Ok(Self { queue, minute_counts, key_counts, reads, options, thread, path, _lock: lock })
    }

    /// Queues records that are committed in one transaction, or not at all.
    pub fn record(&self, records: Vec<Record>) -> Receipt {
        if records.is_empty() {
            return Receipt::nothing();
        }
        let (ack_sender, receipt) = Receipt::new();
        self.queue.submit(records, Some(ack_sender));
        receipt
    }

    /// Counters and current state of the writer.
    pub fn health(&self) -> Health {
        let mut health = self.queue.health();
        health.lost += self.minute_counts.drop_count();
        health
    }

    /// Writes the queued records and ends the writer thread. Returns how many records could not be
    /// written.
    pub fn close(self) -> u64 {
        self.stop()
    }

    /// Like [`Records::close`], for records that other owners still hold: their later calls are
    /// refused. While the database is unavailable, the waiting batch gets one last attempt.
    pub fn stop(&self) -> u64 {
        self.queue.close();
        let Some(thread) = self.thread.lock().take() else { return 0 };
        // After a panic, at least the records that the thread had taken are not written.
        thread.join().unwrap_or_else(|_| self.queue.status().0 + 1)
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("health", &self.health()).finish_non_exhaustive()
    }
}
