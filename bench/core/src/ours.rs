//! Catraca itself, measured beside the others: store, engine, and the parts that the store leaves
//! out. Uses only what a user of the library can use; must not reach around it to look faster.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use catraca::core::batch::{Batch, CheckBatch, CheckRow, Reply, RowVerdict};
use catraca::core::digest::{Digester, Domain, Key, Secret};
use catraca::core::limit::{BucketTerms, Limit, WindowTerms};
use catraca::core::request::DEFAULT_NAMESPACE;
use catraca::store::{Store, When};
use catraca::{
    Catalog, Check, Clock, Engine, ManualClock, Memory, MemoryOptions, Span, SystemClock, Time,
};

use crate::keys::scatter;
use crate::measure::{KeyBytes, Measure};
use crate::results::Figures;
use crate::subject::{BURST, SECONDS_PER_UNIT, Subject};

/// The one policy and the one attribute of every case.
const POLICY: &str = "bench";
const ATTRIBUTE: &str = "user";

/// The span of every window, in microseconds.
const MINUTE: i64 = 60_000_000;

/// Hands one of our subjects to a measurement.
pub fn run<M: Measure>(name: &str, measure: M) -> Option<Figures> {
    Some(match name {
        "catraca-store" => measure.run(|_| StoreAlone(memory(clock::<M>()))),
        "catraca-store+digest+clock" => measure.run(|_| StoreFromText::new(clock::<M>())),
        "catraca-engine" => measure.run(|_| EngineWhole::new::<M>(&bucket_text())),
        "catraca-engine-window" => measure.run(|_| EngineWhole::new::<M>("window = \"60 per 1m\"")),
        "clock" if !M::UNDER_VALGRIND => measure.run(|_| OwnClock(SystemClock::new())),
        "digest" => measure.run(|_| OwnDigest(digester())),
        _ => return None,
    })
}

/// The system's clock; under valgrind one that does not move.
fn clock<M: Measure>() -> Arc<dyn Clock> {
    if M::UNDER_VALGRIND {
        return Arc::new(stopped_clock());
    }
    Arc::new(SystemClock::new())
}

fn stopped_clock() -> ManualClock {
    ManualClock::at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000))
}

fn memory(clock: Arc<dyn Clock>) -> Memory {
    Memory::new(options(), clock)
}

/// The default store, with a budget that a million windows fit into: a full store shares cells,
/// which is other work than meant. The budget is a bound; nothing is allocated ahead.
fn options() -> MemoryOptions {
    MemoryOptions { budget_bytes: 2 << 30, ..MemoryOptions::default() }
}

fn digester() -> Digester {
    Digester::new(&Secret::from_bytes([7; 32]))
}

/// The common terms as core has them: one unit per period of microseconds.
fn bucket() -> Limit {
    let period = i64::from(SECONDS_PER_UNIT) * 1_000_000;
    Limit::Bucket(BucketTerms { size: i64::from(BURST), tokens: 1, period })
}

/// The common terms as a catalog has them.
fn bucket_text() -> String {
    format!("bucket = {{ size = {BURST}, refill = \"1 per {SECONDS_PER_UNIT}s\" }}")
}

/// The store alone: digests come from arithmetic, instants from a counter.
struct StoreAlone(Memory);

thread_local! {
    /// Microseconds since an arbitrary start, one more per decision, so that buckets refill.
    static INSTANT: Cell<i64> = const { Cell::new(0) };
}

impl Subject for StoreAlone {
    fn hit(&self, _: &str) -> bool {
        unreachable!("the store alone takes no text")
    }

    #[inline]
    fn hit_number(&self, number: u64) -> bool {
        let now = INSTANT.replace(INSTANT.get() + 1);
        let when = When::At(Time::from_micros(1_800_000_000_000_000 + now));
        passes(&self.0, key_of(number), bucket(), when)
    }
}

/// A key that looks like a digest and costs next to nothing.
#[inline]
fn key_of(number: u64) -> Key {
    let high = scatter(number);
    let low = scatter(!number);
    Key::from_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
}

/// One row through the store; false also for a row that was counted in a shared cell, because that
/// is not the work meant.
#[inline]
fn passes(store: &Memory, key: Key, limit: Limit, when: When) -> bool {
    match store.apply(&one_row(key, limit, false), when) {
        Ok(Reply::Check(reply)) => reply.passed && !reply.rows[0].is_overflow,
        _ => false,
    }
}

/// The batch that a plain check of one policy becomes.
#[inline]
fn one_row(key: Key, limit: Limit, peek: bool) -> Batch {
    let mut check = CheckBatch { peek, ..CheckBatch::default() };
    check.rows.push(CheckRow { family: 1, ..CheckRow::new(key, limit) });
    Batch::Check(check)
}

/// The digest of (namespace, policy, attribute, value), as the engine makes it.
#[inline]
fn digest(digester: &Digester, value: &str) -> Key {
    let mut hasher = digester.start(Domain::Cell);
    hasher.part(DEFAULT_NAMESPACE.as_bytes()).part(POLICY.as_bytes());
    hasher.part(ATTRIBUTE.as_bytes()).part(value.as_bytes()).finish()
}

/// From a key's text to a verdict: the work of the floors and of governor.
struct StoreFromText {
    store: Memory,
    digester: Digester,
}

impl StoreFromText {
    fn new(clock: Arc<dyn Clock>) -> Self {
        StoreFromText { store: memory(clock), digester: digester() }
    }
}

impl Subject for StoreFromText {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        passes(&self.store, digest(&self.digester, key), bucket(), When::Store)
    }
}

/// From a subject to a whole decision.
struct EngineWhole(Engine);

impl EngineWhole {
    fn new<M: Measure>(limit: &str) -> Self {
        let text = format!("[policy.{POLICY}]\nby = [\"{ATTRIBUTE}\"]\n{limit}\n");
        let catalog = Catalog::parse(&text).expect("the catalog of the benchmark");
        let builder = Engine::builder(catalog).memory(options());
        let builder = if M::UNDER_VALGRIND { builder.clock(stopped_clock()) } else { builder };
        EngineWhole(builder.build())
    }
}

impl Subject for EngineWhole {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        let check = Check::new(POLICY, [(ATTRIBUTE, key)]);
        let decision = self.0.check(&check);
        decision.is_ok_and(|decision| decision.allowed && !black_box(&decision).degraded)
    }
}

/// Our clock alone.
struct OwnClock(SystemClock);

impl Subject for OwnClock {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        black_box(self.0.now());
        !black_box(key).is_empty()
    }
}

/// Our digest alone.
struct OwnDigest(Digester);

impl Subject for OwnDigest {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        black_box(digest(&self.0, black_box(key)));
        true
    }
}

/// Bytes per key of exact windows when each of many keys holds `limit` entries.
pub fn windows(limit: u64, quick: bool) -> Option<Figures> {
    let keys = (12_000_000 / limit).min(100_000) / if quick { 10 } else { 1 };
    let bytes = KeyBytes::start();
    let store = memory(Arc::new(SystemClock::new()));
    for entry in 0..limit {
        for key in 0..keys {
            let fits = passes(&store, key_of(key), window(limit), at(key, entry, limit));
            assert!(fits, "key {key} was denied entry {entry} of {limit}");
        }
    }
    let mut figures = Figures::default();
    figures.put("keys", keys as f64);
    figures.put("bytes_key", bytes.per_key(keys));
    expect_full(&store, keys, limit);
    Some(figures)
}

fn window(limit: u64) -> Limit {
    Limit::Window([WindowTerms { limit: limit as i64, span: Span::from_micros(MINUTE) }].into())
}

/// When a key gets an entry: spread over the minute, and never at an even pace, which a delta code
/// would find too easy.
fn at(key: u64, entry: u64, limit: u64) -> When {
    let gap = MINUTE as u64 / (limit + 1);
    let jitter = scatter(key << 16 | entry) % gap;
    When::At(Time::from_micros(1_800_000_000_000_000 + (entry * gap + jitter) as i64))
}

/// Panics unless no key has room for one more.
fn expect_full(store: &Memory, keys: u64, limit: u64) {
    let full = |key| {
        let batch = one_row(key_of(key), window(limit), true);
        match store.apply(&batch, at(key, limit, limit)) {
            Ok(Reply::Check(reply)) => reply.rows[0].verdict == RowVerdict::OverLimit,
            _ => false,
        }
    };
    assert!((0..keys).all(full), "a window was not full");
}
