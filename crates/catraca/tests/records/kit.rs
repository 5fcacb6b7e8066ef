//! What every test here needs: a folder of its own, records, an engine that is heard.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catraca::records::{Blocking, Deed, Options, Record, Records, Who};
use catraca::{Catalog, Check, Engine, ManualClock, Secret, Span, Subject, Time};
use catraca_core::cell::block::{Note, Origin};
use catraca_core::digest::{Digester, Domain};

pub const START: Time = Time::from_micros(1_800_000_000_000_000);
pub const SECRET: Secret = Secret::from_bytes([7; 32]);

/// A folder that goes with the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("catraca-records-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn database(&self) -> PathBuf {
        self.file("catraca.db")
    }

    pub fn url(&self) -> String {
        format!("sqlite:{}", self.database().display())
    }

    pub fn open(&self) -> Records {
        Records::open(&self.url(), Options::default()).unwrap()
    }

    /// Every byte of every file.
    pub fn bytes(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        files.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
    }

    /// Whether any file holds these bytes.
    pub fn holds(&self, needle: &str) -> bool {
        let needle = needle.as_bytes();
        self.bytes().iter().any(|(_, bytes)| bytes.windows(needle.len()).any(|at| at == needle))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An engine whose events are recorded, and its clock.
pub fn engine(catalog: &str, records: &Arc<Records>) -> (Engine, ManualClock) {
    let clock = ManualClock::at(START);
    (engine_at(catalog, records, &clock), clock)
}

pub fn engine_at(catalog: &str, records: &Arc<Records>, clock: &ManualClock) -> Engine {
    let heard = Arc::clone(records);
    Engine::builder(Catalog::parse(catalog).unwrap())
        .clock(clock.clone())
        .secret(SECRET)
        .listener(move |event| heard.hear(event))
        .build()
}

pub fn passes(engine: &Engine, gate: &str, subject: &[(&str, &str)]) -> bool {
    engine
        .check(&Check::new(gate, subject.iter().copied().collect::<Subject<'_>>()))
        .unwrap()
        .allowed
}

pub fn secs(seconds: i64) -> Span {
    Span::from_secs(seconds)
}

pub fn at(seconds: i64) -> Time {
    START.after(secs(seconds))
}

/// Whom a record is about: one address under one policy.
pub fn who(policy: &str, address: &str) -> Who {
    let mut hasher = Digester::new(&SECRET).start(Domain::Cell);
    Who {
        key: hasher.part(policy.as_bytes()).part(address.as_bytes()).finish(),
        namespace: "default".to_owned(),
        policy: policy.to_owned(),
        parts: vec![("ip".to_owned(), address.to_owned())],
    }
}

pub fn blocking(who: Who, until: Time, origin: Origin, reason: Option<&str>) -> Deed {
    let note = Note { reason: reason.map(Into::into), ..Note::default() };
    Deed::Block(Box::new(Blocking { who, until, origin, note, shadow: false }))
}

/// A block that the engine started by itself.
pub fn excess(policy: &str, address: &str, from: Time, until: Time) -> Record {
    Record::automatic(from, blocking(who(policy, address), until, Origin::Excess, None))
}

pub fn write(records: &Records, all: Vec<Record>) {
    assert!(records.record(all).wait().is_durable());
}

/// One value that a question asked of the file itself gives.
pub fn ask<T: rusqlite::types::FromSql>(database: &Path, sql: &str) -> Vec<T> {
    let connection = rusqlite::Connection::open(database).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}
