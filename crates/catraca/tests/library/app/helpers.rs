//! Applications with records, alone or over a store that several nodes share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use catraca::core::batch::{Batch, Reply};
use catraca::records::{AuditRow, Operator, Options, Records};
use catraca::store::{SharedStore, Store, StoreError, StoreFuture, StoreStatus, When};
use catraca::{
    App, BlockProposal, Builder, Catalog, Check, Clock, Decision, Engine, ManualClock, Memory,
    MemoryOptions, Secret, Span, Subject, Time,
};
use tokio::sync::watch;

pub const START: Time = Time::from_micros(1_800_000_000_000_000);
/// An operator who gives no reason.
pub const ANA: Operator<'static> = Operator { name: "ana", why: None };
pub const IP: &str = "192.0.2.1";

pub const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "3 per 1m"
block  = "5m"

[policy.pay]
by     = ["ip"]
bucket = { size = 10, refill = "1 per 1h" }
cost   = { "404" = 11, default = 1 }
debt   = true
ban    = [ { when = "status == 403", for = "10m", reason = "refused upstream" } ]

[facts.ip."192.0.2.1"]
country = "pt"
"#;

/// Records in a file that is removed with its test.
pub struct RecordsFile {
    path: PathBuf,
    pub records: Arc<Records>,
}

impl RecordsFile {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("catraca-app-{}-{number}.db", std::process::id());
        let path = std::env::temp_dir().join(name);
        let url = format!("sqlite:{}", path.display());
        Self { path, records: Arc::new(Records::open(&url, Options::default()).unwrap()) }
    }

    /// Makes the writer wait until the connection is dropped, for up to 5 seconds: another writer
    /// has the file.
    pub fn hold_writes(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(&self.path).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        connection
    }

    /// Makes every read of subjects fail.
    pub fn fail_reads(&self) {
        let connection = rusqlite::Connection::open(&self.path).unwrap();
        connection.execute_batch("ALTER TABLE subjects RENAME TO lost").unwrap();
    }

    /// The audit, oldest first.
    pub fn audit(&self) -> Vec<AuditRow> {
        let query = catraca::records::AuditQuery { limit: 1_000, ..Default::default() };
        let mut rows = self.records.audit(&query).unwrap().rows;
        rows.reverse();
        rows
    }
}

impl Drop for RecordsFile {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", self.path.display()));
        }
    }
}

/// A store in memory that several nodes share. While it is held, calls wait.
#[derive(Clone)]
pub struct HeldStore(Arc<Server>);

struct Server {
    memory: Memory,
    clock: ManualClock,
    changes: AtomicU64,
    releases: AtomicU64,
    refuses_resets: AtomicBool,
    is_held: watch::Sender<bool>,
    /// Runs once, before the next release reaches the memory.
    before_release: Mutex<Option<ReleaseHook>>,
}

type ReleaseHook = Box<dyn FnOnce(&Memory) + Send>;

impl HeldStore {
    pub fn new(clock: &ManualClock) -> Self {
        Self(Arc::new(Server {
            memory: Memory::new(MemoryOptions::default(), Arc::new(clock.clone())),
            clock: clock.clone(),
            changes: AtomicU64::new(0),
            releases: AtomicU64::new(0),
            refuses_resets: AtomicBool::new(false),
            is_held: watch::Sender::new(false),
            before_release: Mutex::new(None),
        }))
    }

    /// Does something to the memory between a release's read of the records and its effect.
    pub fn before_release(&self, hook: impl FnOnce(&Memory) + Send + 'static) {
        *self.0.before_release.lock().unwrap() = Some(Box::new(hook));
    }

    /// How many batches of releases have arrived.
    pub fn releases(&self) -> u64 {
        self.0.releases.load(Ordering::SeqCst)
    }

    /// Makes every reset fail from now on.
    pub fn refuse_resets(&self) {
        self.0.refuses_resets.store(true, Ordering::SeqCst);
    }

    pub fn hold(&self, is_held: bool) {
        self.0.is_held.send_replace(is_held);
    }

    async fn wait(&self) {
        self.0.is_held.subscribe().wait_for(|is_held| !is_held).await.unwrap();
    }
}

impl SharedStore for HeldStore {
    fn apply<'a>(&'a self, batch: &'a Batch, when: When) -> StoreFuture<'a, Reply> {
        Box::pin(async move {
            self.wait().await;
            if matches!(batch, Batch::Reset(_)) && self.0.refuses_resets.load(Ordering::SeqCst) {
                return Err(StoreError::unavailable("the test refuses resets"));
            }
            if matches!(batch, Batch::Unblock(_)) {
                self.0.releases.fetch_add(1, Ordering::SeqCst);
                let hook = self.0.before_release.lock().unwrap().take();
                hook.into_iter().for_each(|hook| hook(&self.0.memory));
            }
            self.0.memory.apply(batch, when)
        })
    }

    fn status(&self) -> StoreFuture<'_, StoreStatus> {
        Box::pin(async {
            let changes = self.0.changes.load(Ordering::SeqCst);
            Ok(StoreStatus { changes, now: self.0.clock.now(), incarnation: 1 })
        })
    }

    fn publish_change(&self) -> StoreFuture<'_, ()> {
        Box::pin(async {
            self.wait().await;
            self.0.changes.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    }

    fn bind_records<'a>(&'a self, records: &'a str) -> StoreFuture<'a, String> {
        Box::pin(async { Ok(records.to_owned()) })
    }
}

/// Two nodes over one store and one file of records.
pub struct Nodes {
    pub here: App,
    pub there: App,
    pub store: HeldStore,
    pub file: RecordsFile,
    pub clock: ManualClock,
}

impl Nodes {
    pub async fn start() -> Self {
        let clock = ManualClock::at(START);
        let store = HeldStore::new(&clock);
        let file = RecordsFile::new();
        let here = start_node(&store, &file, &clock).await;
        let there = start_node(&store, &file, &clock).await;
        Self { here, there, store, file, clock }
    }

    /// Waits until the other node notices a change.
    pub async fn wait_published(&self) {
        let noticed = async {
            while !self.there.heartbeat().await.unwrap().changed {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(20), noticed).await.unwrap();
    }
}

async fn start_node(store: &HeldStore, file: &RecordsFile, clock: &ManualClock) -> App {
    start_node_with(builder(clock), store, file).await
}

/// A node with an engine of the test's own.
pub async fn start_node_with(engine: Builder, store: &HeldStore, file: &RecordsFile) -> App {
    let store = Arc::new(store.clone());
    let app = App::over_store(engine, store, Default::default()).unwrap();
    let app = app.records(Arc::clone(&file.records)).build();
    app.resume(None).await.unwrap();
    app
}

pub fn builder(clock: &ManualClock) -> Builder {
    let catalog = Catalog::parse(CATALOG).unwrap();
    Engine::builder(catalog).clock(clock.clone()).secret(Secret::from_bytes([7; 32]))
}

/// An application over memory, with records.
pub fn app_with(file: &RecordsFile) -> App {
    app_with_clock(file, &ManualClock::at(START))
}

/// The same, with a clock that the test advances.
pub fn app_with_clock(file: &RecordsFile, clock: &ManualClock) -> App {
    let engine = builder(clock).build();
    App::local(engine).records(Arc::clone(&file.records)).build()
}

/// An application over memory, without records.
pub fn app_without_records() -> App {
    App::local(builder(&ManualClock::at(START)).build()).build()
}

pub async fn check(app: &App, gate: &str) -> Decision {
    app.check(&Check::new(gate, [("ip", IP)])).await.unwrap()
}

pub fn subject() -> Subject<'static> {
    Subject::from([("ip", IP)])
}

/// A block of ten minutes.
pub fn proposal(reason: Option<&str>) -> BlockProposal {
    BlockProposal::by_operator(Span::from_secs(600), reason)
}
