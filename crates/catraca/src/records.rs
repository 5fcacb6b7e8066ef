//! Records: the durable, SQL-readable history of blocks, lists, facts, modes and operators' acts.
//!
//! One thread writes, in transactions that many acts share; an act is acknowledged when its
//! transaction is on disk. Decisions never wait for it. Must not hold a private value in clear, nor
//! take a damaged file for an empty one.
//!
//! ```no_run
//! use catraca::records::{Options, Records};
//! use catraca::{BlockOrder, Catalog, Engine, Secret, Span, Subject};
//! use std::sync::Arc;
//!
//! # let catalog = Catalog::parse("")?;
//! # let secret = Secret::from_bytes([7; 32]);
//! let records = Arc::new(Records::open("sqlite:catraca.db", Options::default())?);
//! let heard = Arc::clone(&records);
//! let engine = Engine::builder(catalog)
//!     .secret(secret)
//!     .listener(move |event| heard.hear(event))
//!     .build();
//! engine.resume(&records, None)?;
//!
//! let order = BlockOrder {
//!     namespace: "default",
//!     policy: "login",
//!     subject: Subject::from([("ip", "198.51.100.7")]),
//!     span: Span::from_secs(600),
//!     reason: Some("fraud"),
//! };
//! let (blocked, receipt) = records.acknowledged(Some("ana"), None, || engine.block(&order));
//! println!("{:?}, durable: {}", blocked?, receipt.wait().is_durable());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ask;
mod error;
mod health;
mod hear;
mod lock;
mod locks;
mod port;
#[cfg(feature = "postgres")]
mod postgres;
mod privacy;
mod queue;
mod receipt;
mod record;
mod row;
mod sqlite;
mod tally;
mod words;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;

use lock::Lock;
use port::{Reads, Writes};
use queue::Queue;
use tally::Tally;
use writer::Writer;

pub use crate::url::{is_postgres, redacted};
pub use error::{OpenError, RecordsError};
pub use health::Health;
pub use locks::KeptLock;
pub use port::{Purged, Retention, Swept};
pub use privacy::{Erased, Exported, known_as};
pub use receipt::{Ack, Receipt};
pub use record::{
    About, Blocking, Count, Debt, Deed, ListName, Noted, PolicyReset, Record, Revision, Who,
};
pub use row::{
    AuditQuery, AuditRow, BlockQuery, BlockRow, Cursor, Extent, FactPlace, FactRow, HistoryRow,
    ListRow, NotACursor, PAGE_MAX, Page, RevisionRow, Standing, StandingBlock, StandingDebt,
    TopBlocked, Totals,
};
pub use sqlite::{PutBack, back_up, put_back, put_back_over};

/// How records are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How long each class of data is kept.
    pub retention: Retention,
}

/// Open records. Dropping them writes what waits.
pub struct Records {
    queue: Arc<Queue>,
    tally: Arc<Tally>,
    reads: Box<dyn Reads>,
    options: Options,
    thread: Mutex<Option<JoinHandle<u64>>>,
    /// Held where only one process may have the records.
    _lock: Option<Lock>,
}

impl Records {
    /// Opens the records of a URL such as `sqlite:catraca.db` or `postgres://ana@host/shop`, made
    /// new if there are none.
    pub fn open(url: &str, options: Options) -> Result<Self, OpenError> {
        if is_postgres(url) {
            return Self::open_postgres(url, options);
        }
        let path = url.strip_prefix("sqlite:").filter(|path| !path.is_empty());
        let path = Path::new(path.ok_or_else(|| OpenError::Url { url: redacted(url) })?);
        let lock = Lock::take(path)?;
        let (writes, reads) = sqlite::open(path)?;
        Self::start(Box::new(writes), Box::new(reads), options, Some(lock))
            .map_err(|error| OpenError::io(path, &error))
    }

    /// Several processes may have these: the database keeps them apart.
    #[cfg(feature = "postgres")]
    fn open_postgres(url: &str, options: Options) -> Result<Self, OpenError> {
        let (writes, reads) = postgres::open(url)?;
        Self::start(Box::new(writes), Box::new(reads), options, None)
            .map_err(|error| OpenError::io(Path::new("postgres:"), &error))
    }

    #[cfg(not(feature = "postgres"))]
    fn open_postgres(url: &str, _: Options) -> Result<Self, OpenError> {
        Err(OpenError::NotBuilt { url: redacted(url) })
    }

    fn start(
        database: Box<dyn Writes>,
        reads: Box<dyn Reads>,
        options: Options,
        lock: Option<Lock>,
    ) -> std::io::Result<Self> {
        let (queue, tally) = (Arc::new(Queue::default()), Arc::new(Tally::new()));
        let writer = Writer { database, queue: Arc::clone(&queue), tally: Arc::clone(&tally) };
        let thread = std::thread::Builder::new().name("catraca-records".into());
        let thread = Mutex::new(Some(thread.spawn(|| writer.start())?));
        Ok(Self { queue, tally, reads, options, thread, _lock: lock })
    }

    /// Records some acts, together or not at all.
    pub fn record(&self, records: Vec<Record>) -> Receipt {
        if records.is_empty() {
            return Receipt::nothing();
        }
        let (acker, receipt) = Receipt::new();
        self.queue.submit(records, Some(acker));
        receipt
    }

    /// How the records fare.
    pub fn health(&self) -> Health {
        self.queue.counters.health(self.queue.state())
    }

    /// Writes what waits and ends the thread; says how many records could not be written.
    pub fn close(self) -> u64 {
        self.stop()
    }

    /// The same for records that others still hold: what they ask for from now on is refused. Where
    /// nothing can be written, there is one last attempt.
    pub fn stop(&self) -> u64 {
        self.queue.close();
        let thread = self.thread.lock().take();
        thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
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
