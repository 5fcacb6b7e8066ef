//! Core's lock rules, and the memory store over them, against the lock model: random operations
//! must get equal answers.

use std::sync::Arc;

use catraca::locks::{LockStore, MemoryLocks};
use catraca::store::When;
use catraca::{ManualClock, Time};
use catraca_core::lock::{LockOp, LockReply};
use catraca_testkit::generate::Rng;
use catraca_testkit::locks::trace::{LockDriver, run_trace, run_trace_on};
use tokio::runtime::{Builder, Runtime};

/// The default seed; `CATRACA_SEED` overrides it.
const SEED: u64 = 2_024;
const TRACES: u64 = 400;
const LENGTH: usize = 400;

fn seeds() -> Rng {
    let seed = std::env::var("CATRACA_SEED").ok().and_then(|seed| seed.parse().ok());
    Rng::new(seed.unwrap_or(SEED))
}

/// covers: 004-21, 004-28, 004-29, 004-31, 004-64, 004-84, B-62, B-63, B-64, B-66
#[test]
fn the_rules_of_locks_and_the_model_always_agree() {
    let mut rng = seeds();
    for _ in 0..TRACES {
        if let Err(difference) = run_trace(rng.next_u64(), LENGTH) {
            panic!("{difference}");
        }
    }
    println!("{} operations, 0 differences", TRACES as usize * LENGTH);
}

/// The memory store, and the runtime of its calls.
struct MemoryDriver {
    runtime: Runtime,
    store: MemoryLocks,
}

impl LockDriver for MemoryDriver {
    fn execute(&mut self, op: &LockOp, now: Time) -> LockReply {
        self.runtime.block_on(self.store.ask("n", op, When::At(now))).unwrap()
    }
}

#[test]
fn the_memory_store_and_the_model_always_agree() {
    let mut rng = seeds();
    for _ in 0..TRACES / 4 {
        let runtime = Builder::new_current_thread().build().unwrap();
        let store = MemoryLocks::new(Arc::new(ManualClock::at(Time::ZERO)));
        let mut driver = MemoryDriver { runtime, store };
        if let Err(difference) = run_trace_on(&mut driver, 1_000_000, rng.next_u64(), LENGTH) {
            panic!("{difference}");
        }
    }
}
