//! Decisions counted per minute, namespace, action and policy, until the writer takes the sums.
//!
//! Threads count in shards, so that a check hardly ever waits for another one. Counts that are not
//! written when the process is killed are lost: they are statistics. The number of actions is
//! bounded, because callers choose their names; further actions share one count.

use std::hash::RandomState;
use std::sync::atomic::{AtomicUsize, Ordering};

use catraca_core::decision::{Decision, Reason};
use catraca_core::time::Time;
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::record::MinuteCount;

const SHARDS: usize = 16;
/// Actions that one shard counts separately between two writes.
const ACTIONS_MAX: usize = 4_096;
/// The action that further actions are counted under.
pub(super) const OTHER: &str = "(other)";
/// Minutes that one shard keeps while the database is unavailable; then the oldest is dropped.
const MINUTES_MAX: usize = 120;
const MICROS_PER_MINUTE: i64 = 60_000_000;

/// Decisions counted by minute, namespace, action and policy.
#[derive(Debug)]
pub(super) struct MinuteCounts {
    shards: [Mutex<ShardCounts>; SHARDS],
}

#[derive(Debug, Default)]
struct ShardCounts {
    minute: i64,
    /// Different actions in `open`.
    actions: usize,
    open: ByName<ByName<ByName<[u64; 3]>>>,
    /// Complete minutes that the writer has not taken, oldest first.
    closed: Vec<Minute>,
    /// Minutes that were dropped because the writer took none for too long.
    dropped: u64,
}

/// Counts by namespace, action and policy; the empty policy counts whole decisions of the gate.
type Minute = (i64, ByName<ByName<ByName<[u64; 3]>>>);
type ByName<V> = HashMap<String, V, RandomState>;

impl MinuteCounts {
    pub(super) fn new() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()) }
    }

    /// Counts a decision once for its gate and once for each of its rows.
    pub(super) fn count(&self, namespace: &str, action: &str, decision: &Decision) {
        let mut counts = self.shards[shard()].lock();
        counts.roll_over(minute_of(decision.at));
        counts.add(namespace, action, "", outcome(decision.allowed, decision.reason));
        for row in &decision.rows {
            counts.add(namespace, action, &row.policy, outcome(row.allowed, row.reason));
        }
    }

    /// Minutes of a shard that were dropped.
    pub(super) fn drop_count(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().dropped).sum()
    }

    /// Takes and clears all counts.
    pub(super) fn take(&self) -> Vec<MinuteCount> {
        let mut counts = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock();
            let minute = shard.minute;
            shard.close(minute);
            let closed = std::mem::take(&mut shard.closed);
            // Released before the rest, so that decisions do not wait.
            drop(shard);
            closed.into_iter().for_each(|minute| flatten(minute, &mut counts));
        }
        counts
    }
}

impl ShardCounts {
    fn roll_over(&mut self, minute: i64) {
        if minute != self.minute {
            self.close(self.minute);
            self.minute = minute;
        }
    }

    fn close(&mut self, minute: i64) {
        if self.open.is_empty() {
            return;
        }
        if self.closed.len() == MINUTES_MAX {
            self.closed.remove(0);
            self.dropped += 1;
        }
        self.actions = 0;
        self.closed.push((minute, std::mem::take(&mut self.open)));
    }

    fn add(&mut self, namespace: &str, action: &str, policy: &str, outcome: usize) {
        let actions = self.open.entry_ref(namespace).or_default();
        let full = self.actions >= ACTIONS_MAX && !actions.contains_key(action);
        let policies = actions.entry_ref(if full { OTHER } else { action }).or_default();
        self.actions += usize::from(policies.is_empty());
        policies.entry_ref(policy).or_default()[outcome] += 1;
    }
}

/// The index of an outcome in the counts: allowed, denied, blocked.
pub(super) fn outcome(allowed: bool, reason: Reason) -> usize {
    match reason {
        _ if allowed => 0,
        Reason::Blocked | Reason::Blocklisted => 2,
        _ => 1,
    }
}

pub(super) fn minute_of(at: Time) -> i64 {
    at.micros().div_euclid(MICROS_PER_MINUTE)
}

fn flatten(minute: Minute, into: &mut Vec<MinuteCount>) {
    let (minute, table) = minute;
    for (namespace, actions) in table {
        for (action, policies) in actions {
            for (policy, [allowed, denied, blocked]) in policies {
                let namespace = namespace.clone();
                let action = action.clone();
                into.push(MinuteCount {
                    minute,
                    namespace,
                    action,
                    policy,
                    allowed,
                    denied,
                    blocked,
                });
            }
        }
    }
}

/// The shard of this thread; threads are assigned round-robin.
fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    MINE.with(|mine| *mine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_one(counts: &mut ShardCounts, action: &str) {
        counts.add("default", action, "", 0);
    }

    #[test]
    fn actions_that_callers_make_up_are_counted_together() {
        let mut counts = ShardCounts::default();
        (0..ACTIONS_MAX + 50).for_each(|number| count_one(&mut counts, &number.to_string()));
        count_one(&mut counts, "0");
        let actions = &counts.open["default"];
        assert_eq!(actions.len(), ACTIONS_MAX + 1);
        assert_eq!((actions[OTHER][""][0], actions["0"][""][0]), (50, 2));
    }

    #[test]
    fn minutes_that_nobody_takes_are_bounded() {
        let mut counts = ShardCounts::default();
        for minute in 0..200 {
            counts.roll_over(minute);
            count_one(&mut counts, "login");
        }
        assert_eq!(counts.closed.len(), MINUTES_MAX);
        assert_eq!(counts.closed[0].0, 199 - MINUTES_MAX as i64);
        assert_eq!(counts.dropped, 199 - MINUTES_MAX as u64, "dropped minutes are counted");
    }
}
