//! Core's lock rules, and the memory store over them, against the lock model: random operations
//! must get equal answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use catraca::locks::{LockStore, MemoryLocks};
use catraca::store::When;
use catraca::{ManualClock, Time};
use catraca_core::lock::persistence::PersistedVersion;
use catraca_core::lock::reply::AcquireReply;
use catraca_core::lock::table::{PartialLockTable, StoredLease};
use catraca_core::lock::{LockName, LockOp, LockOutcome, LockReply, LockTable};
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

/// A table that is stored and loaded again for every operation, as the PostgreSQL store does.
#[derive(Default)]
struct ReloadedTable {
    now: Time,
    fence: i64,
    leases: Vec<StoredLease>,
    versions: BTreeMap<LockName, PersistedVersion>,
    /// A table that is never stored: for counters and the previous values of versions, which a
    /// partial table does not have.
    whole: LockTable,
}

impl LockDriver for ReloadedTable {
    fn execute(&mut self, op: &LockOp, now: Time) -> LockReply {
        if let LockOp::Undo(key) = op {
            // Ends the lease first if it has expired: then its versions stay.
            let is_live = self.whole.snapshot(*key, now).is_some_and(|it| it.lease.state.is_live());
            let lowered = self.whole.lowered_versions(*key);
            self.store_versions(if is_live { lowered } else { Vec::new() });
        }
        let reply_of_whole = self.whole.apply(op, now);
        if matches!(op, LockOp::Counters) {
            return reply_of_whole;
        }
        let mut table = LockTable::from_partial(PartialLockTable {
            now: self.now,
            fence: self.fence,
            leases: std::mem::take(&mut self.leases),
            versions: self.versions.values().cloned().collect(),
            ..PartialLockTable::default()
        });
        let reply = table.apply(op, now);
        if let LockOutcome::Acquired(AcquireReply::Granted(lease)) = &reply.outcome {
            self.store_versions(table.raised_versions(lease));
        }
        self.now = reply.now;
        self.fence = table.fence();
        self.leases = table.stored_leases().into_values().collect();
        reply
    }
}

impl ReloadedTable {
    fn store_versions(&mut self, versions: Vec<PersistedVersion>) {
        self.versions.extend(versions.into_iter().map(|version| (version.name.clone(), version)));
    }
}

#[test]
fn a_table_that_is_loaded_for_every_operation_and_the_model_always_agree() {
    let mut rng = seeds();
    for _ in 0..TRACES / 4 {
        let mut driver = ReloadedTable::default();
        if let Err(difference) = run_trace_on(&mut driver, 1_000_000, rng.next_u64(), LENGTH) {
            panic!("{difference}");
        }
    }
}
