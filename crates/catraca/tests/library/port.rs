//! The `Store` trait: one call per decision, and a failing store is an error, not a denial.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use catraca::memory::{Memory, MemoryOptions};
use catraca::store::{Store, StoreError, When};
use catraca::{Catalog, Check, Engine, Error, ManualClock, Outcome, Settle, Span};
use catraca_core::batch::{Batch, Reply};
use catraca_core::cell::CellKind;

const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "2 per 1s"
block  = "5m"

[policy.lookup]
by     = ["ip"]
bucket = { size = 10, refill = "1 per 1m" }
cost   = { "404" = 5, default = 1 }

[policy.pay]
by  = ["ip"]
ban = [ { when = "status == 402", for = "10m" } ]

[gate.all]
policies = ["login", "lookup", "pay"]
"#;

/// A memory store that counts its calls and can be made to fail.
struct CountingStore {
    memory: Memory,
    trips: AtomicU64,
    cut: AtomicBool,
}

impl Store for CountingStore {
    fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        if self.cut.load(Ordering::Relaxed) {
            return Err(StoreError::unavailable("connection lost"));
        }
        self.trips.fetch_add(1, Ordering::Relaxed);
        self.memory.apply(batch, when)
    }
}

fn engine() -> (Engine<CountingStore>, ManualClock) {
    let clock = ManualClock::default();
    let memory = Memory::new(MemoryOptions::default(), Arc::new(clock.clone()));
    let store = CountingStore { memory, trips: AtomicU64::new(0), cut: AtomicBool::new(false) };
    let catalog = Catalog::parse(CATALOG).expect("a catalog");
    (Engine::builder(catalog).clock(clock.clone()).build_with_store(store), clock)
}

fn trips(engine: &Engine<CountingStore>) -> u64 {
    engine.store().trips.swap(0, Ordering::Relaxed)
}

/// covers: 002-37, 004-79, B-45
#[test]
fn a_decision_is_one_trip_to_the_store_and_a_settle_another() {
    let (engine, _clock) = engine();
    let check = Check::new("all", [("ip", "198.51.100.7")]);
    let first = engine.check(&check).expect("a decision");
    assert_eq!((first.allowed, first.rows.len(), trips(&engine)), (true, 3, 1));
    let ticket = first.ticket.expect("a ticket");
    engine.settle(&Settle::ticket(&ticket, &Outcome::status(404))).expect("a settlement");
    assert_eq!(trips(&engine), 1);
    assert!(engine.check(&check).expect("a decision").allowed);
    assert!(!engine.check(&check).expect("a decision").allowed);
    assert_eq!(trips(&engine), 2, "a denial that starts a block is one call too");
    engine.peek(&check).expect("a decision");
    assert_eq!(trips(&engine), 1);
}

/// covers: 002-17, 002-29
#[test]
fn an_error_of_the_store_is_told_from_a_denial() {
    let (engine, clock) = engine();
    let check = Check::new("login", [("ip", "198.51.100.7")]);
    let first = engine.check(&check).expect("a decision");
    let reset = first.reset_after.map(Span::ceil_millis);
    assert_eq!((first.allowed, first.remaining, reset), (true, Some(1), Some(1_000)));
    engine.store().cut.store(true, Ordering::Relaxed);
    let failed = engine.check(&check).expect_err("no store");
    assert!(matches!(failed, Error::Store(_)), "{failed:?}");
    assert_eq!(failed.to_string(), "the store is unavailable: connection lost");
    engine.store().cut.store(false, Ordering::Relaxed);
    assert!(engine.check(&check).expect("a decision").allowed, "the failed call charged nothing");
    let denied = engine.check(&check).expect("a denial is not an error");
    assert_eq!((denied.allowed, denied.reason.as_str()), (false, "over_limit"));
    clock.advance(Span::from_secs(300));
    assert!(engine.check(&check).expect("a decision").allowed);
}

/// covers: 002-08
#[test]
fn a_block_outlives_the_window_that_started_it() {
    let (engine, clock) = engine();
    let check = Check::new("login", [("ip", "198.51.100.7")]);
    (0..3).for_each(|_| drop(engine.check(&check).expect("a decision")));
    let cells = || {
        let stats = engine.store().memory.stats();
        (stats[CellKind::SlidingWindow].cells, stats[CellKind::Block].cells)
    };
    assert_eq!(cells(), (1, 1));
    clock.advance(Span::from_secs(2));
    (0..64).for_each(|_| engine.store().memory.reclaim());
    assert_eq!(cells(), (0, 1), "the window has expired, the block has not");
    assert_eq!(engine.check(&check).expect("a decision").reason.as_str(), "blocked");
}
