//! What became of locks and slots, as series.
//!
//! Labels are kinds that the catalog names and words of ours: what callers make up is `(other)`.
//! Must not name a key, a tenant or a holder.

use std::collections::BTreeMap;

use catraca::core::lock::LockTerms;
use catraca::core::lock::tally::Counts;
use catraca::locks::{Durations, TIME_BOUNDS};
use catraca::{Locks, SharedLocks};
use prometheus_client::registry::Registry;

use super::{Counters, Drawn, Gauges, counter, gauge, labels};
use crate::http::Times;
use crate::locks::Keeper;

/// The kind of whatever the catalog does not name.
const OTHER: &str = "(other)";

const UNKEPT: &str = "Calls that failed because of the disk or the store";
const STARTING: &str = "1 while nothing is granted because lost leases may be in force";
const WAITERS: &str = "Callers that wait for a name";
const WAITED: &str = "How long callers waited that had to";

/// Everything about locks that this node knows without asking anybody.
pub fn locks(to: &mut Registry, keeper: &Keeper, terms: &LockTerms) {
    match keeper {
        Keeper::Here(locks) => own(to, locks, terms),
        Keeper::Shared(locks) => shared(to, locks),
    }
}

/// What became of locks that nodes share is counted in their store.
fn shared(to: &mut Registry, locks: &SharedLocks) {
    gauge(to, "lock_waiters", WAITERS, locks.waiters());
    counter(to, "lock_write_failures", UNKEPT, locks.unanswered());
    to.register("lock_wait_seconds", WAITED, drawn(locks.waited()));
}

fn own(to: &mut Registry, locks: &Locks, terms: &LockTerms) {
    let totals = locks.totals();
    let mut kinds: BTreeMap<&str, Counts> = BTreeMap::new();
    for (kind, counts) in &totals.kinds {
        let named = if terms.kinds.contains_key(kind) { kind } else { OTHER };
        let row = kinds.entry(named).or_default();
        *row = row.plus(counts);
    }
    attempts(to, &kinds);
    ends(to, &kinds);
    gauge(to, "lock_waiters", WAITERS, totals.waiters);
    gauge(to, "lease_entries", "Leases in memory, ended ones too", totals.kept);
    gauge(to, "locks_starting", STARTING, usize::from(locks.starting().is_some()));
    counter(to, "lock_write_failures", UNKEPT, totals.unkept);
    to.register("lock_wait_seconds", WAITED, drawn(&totals.times.waited));
    to.register("lock_held_seconds", "How long leases were held", drawn(&totals.times.held));
}

fn attempts(to: &mut Registry, kinds: &BTreeMap<&str, Counts>) {
    let (attempts, active): (Counters, Gauges) = Default::default();
    for (kind, counts) in kinds {
        // A grant that was taken back was one: a counter never falls.
        let results = [("granted", counts.success + counts.undone), ("conflict", counts.conflicts)];
        for (result, count) in results {
            let series = labels([("kind", kind), ("result", result)]);
            attempts.get_or_create(&series).inc_by(count);
        }
        let held = i64::try_from(counts.active).unwrap_or(i64::MAX);
        active.get_or_create(&labels([("kind", kind)])).set(held);
    }
    to.register("lock_attempts", "Attempts to take a name or a slot", attempts);
    to.register("locks", "Leases in force, confirmed slots too", active);
}

fn ends(to: &mut Registry, kinds: &BTreeMap<&str, Counts>) {
    let ends = Counters::default();
    for (kind, counts) in kinds {
        let ways = [
            ("released", counts.released),
            ("expired", counts.expired),
            ("forced", counts.forced),
            ("undone", counts.undone),
        ];
        for (how, count) in ways {
            ends.get_or_create(&labels([("kind", kind), ("how", how)])).inc_by(count);
        }
    }
    to.register("lock_ends", "Leases that ended", ends);
}

fn drawn(durations: &Durations) -> Drawn {
    let bounds = TIME_BOUNDS.iter().map(|micros| *micros as f64 / 1e6).chain([f64::INFINITY]);
    let seconds = durations.micros() as f64 / 1e6;
    Drawn(Times { seconds, buckets: bounds.zip(durations.counts()).collect() })
}
