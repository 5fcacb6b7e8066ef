//! Series about locks and slots.
//!
//! Kinds that the catalog does not name are `(other)`, because callers may choose them freely. No
//! key, tenant or holder is a label.

use std::collections::BTreeMap;

use catraca::Locks;
use catraca::core::lock::LockTerms;
use catraca::core::lock::counters::AttemptCounts;
use catraca::locks::{DurationHistogram, LockTotals, TIME_BOUNDS};
use prometheus_client::registry::Registry;

use super::{CounterFamily, GaugeFamily, HistogramMetric, counter, gauge, labels};
use crate::observe::latency::HistogramSnapshot;

/// The label of kinds that the catalog does not name.
const OTHER: &str = "(other)";

const WRITE_FAILURES: &str =
    "Calls about locks that failed because of the disk or the shared store";
const FAILED_UNDOS: &str =
    "Leases of callers without an answer that could not be reverted and hold until they expire";
const STARTING: &str = "1 while no lock is granted because older leases may still be valid";
const WAITERS: &str = "Callers that wait for a lock";
const WAITED: &str = "Time that callers waited for a lock, of those that waited";
const LEASE_ENTRIES: &str = "Leases in memory, including ended ones";
const HELD: &str = "Time that leases were held";

/// Series about locks. Of a shared store only what this node counts: the store is not asked.
pub fn locks(registry: &mut Registry, locks: &Locks, terms: &LockTerms) {
    gauge(registry, "lock_waiters", WAITERS, locks.waiters());
    counter(registry, "lock_write_failures", WRITE_FAILURES, locks.failed_calls());
    counter(registry, "lock_failed_undos", FAILED_UNDOS, locks.failed_undos());
    registry.register("lock_wait_seconds", WAITED, histogram(locks.wait_times()));
    if let Some(totals) = locks.totals() {
        gauge(registry, "locks_starting", STARTING, usize::from(locks.startup_wait().is_some()));
        local_locks(registry, &totals, terms);
    }
}

/// Locks in the memory of this process.
fn local_locks(registry: &mut Registry, totals: &LockTotals<'_>, terms: &LockTerms) {
    let mut kinds: BTreeMap<&str, AttemptCounts> = BTreeMap::new();
    for (kind, counts) in &totals.kinds {
        let label = if terms.kinds.contains_key(kind) { kind } else { OTHER };
        let sum = kinds.entry(label).or_default();
        *sum = sum.plus(counts);
    }
    attempts(registry, &kinds);
    ends(registry, &kinds);
    gauge(registry, "lease_entries", LEASE_ENTRIES, totals.lease_entries);
    registry.register("lock_held_seconds", HELD, histogram(totals.held_times));
}

fn attempts(registry: &mut Registry, kinds: &BTreeMap<&str, AttemptCounts>) {
    let attempts = CounterFamily::default();
    let active: GaugeFamily = GaugeFamily::default();
    for (kind, counts) in kinds {
        // A grant that was undone, because its write failed, is subtracted from `success`; a
        // Prometheus counter must never fall, so it is added again.
        let results = [("granted", counts.success + counts.undone), ("conflict", counts.conflicts)];
        for (result, count) in results {
            let series = labels([("kind", kind), ("result", result)]);
            attempts.get_or_create(&series).inc_by(count);
        }
        let held = i64::try_from(counts.active).unwrap_or(i64::MAX);
        active.get_or_create(&labels([("kind", kind)])).set(held);
    }
    registry.register("lock_attempts", "Attempts to acquire a lock or a slot, by result", attempts);
    registry.register("locks", "Active leases, including confirmed slots", active);
}

fn ends(registry: &mut Registry, kinds: &BTreeMap<&str, AttemptCounts>) {
    let ends = CounterFamily::default();
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
    registry.register("lock_ends", "Leases that ended, by the way they ended", ends);
}

fn histogram(durations: &DurationHistogram) -> HistogramMetric {
    let bounds = TIME_BOUNDS.iter().map(|micros| *micros as f64 / 1e6).chain([f64::INFINITY]);
    let seconds = durations.micros() as f64 / 1e6;
    HistogramMetric(HistogramSnapshot {
        seconds,
        buckets: bounds.zip(durations.counts()).collect(),
    })
}
