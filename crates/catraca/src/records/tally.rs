//! The tally: decisions counted by minute, until the writer takes the sums.
//!
//! Threads count in tables of their own, so that a check hardly ever waits for another. What is
//! not yet written when the process is killed is lost: counts are statistics. Must not grow with
//! what callers make up: beyond a bound, actions are counted together.

use std::hash::RandomState;
use std::sync::atomic::{AtomicUsize, Ordering};

use catraca_core::decision::{Decision, Reason};
use catraca_core::time::Time;
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::record::Count;

const SHARDS: usize = 16;
/// Different sums that one table holds between two visits of the writer.
const SUMS_MAX: usize = 4_096;
/// The action under which the rest is counted.
pub(super) const OTHER: &str = "(other)";
/// Minutes that one table keeps while nothing can be written; then the oldest is given up.
const MINUTES_MAX: usize = 120;
const MICROS_PER_MINUTE: i64 = 60_000_000;

/// Decisions counted by minute, namespace, action and policy.
#[derive(Debug)]
pub(super) struct Tally {
    shards: [Mutex<Sums>; SHARDS],
}

#[derive(Debug, Default)]
struct Sums {
    minute: i64,
    /// How many different actions are open.
    actions: usize,
    open: Named<Named<Named<[u64; 3]>>>,
    /// Minutes that are over and wait for the writer, oldest first.
    closed: Vec<Minute>,
}

/// By namespace, then by action, then by policy; the empty policy is the gate as a whole.
type Minute = (i64, Named<Named<Named<[u64; 3]>>>);
type Named<V> = HashMap<String, V, RandomState>;

impl Tally {
    pub(super) fn new() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()) }
    }

    /// Counts a decision: once for its gate, and once for each of its rows.
    pub(super) fn count(&self, namespace: &str, action: &str, decision: &Decision) {
        let mut sums = self.shards[shard()].lock();
        sums.turn(minute_of(decision.at));
        sums.add(namespace, action, "", outcome(decision.allowed, decision.reason));
        for row in &decision.rows {
            sums.add(namespace, action, &row.policy, outcome(row.allowed, row.reason));
        }
    }

    /// Takes every sum.
    pub(super) fn take(&self) -> Vec<Count> {
        let mut counts = Vec::new();
        for shard in &self.shards {
            let mut sums = shard.lock();
            let minute = sums.minute;
            sums.close(minute);
            let closed = std::mem::take(&mut sums.closed);
            drop(sums);
            closed.into_iter().for_each(|minute| spread(minute, &mut counts));
        }
        counts
    }
}

impl Sums {
    fn turn(&mut self, minute: i64) {
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
        }
        self.actions = 0;
        self.closed.push((minute, std::mem::take(&mut self.open)));
    }

    fn add(&mut self, namespace: &str, action: &str, policy: &str, outcome: usize) {
        let actions = self.open.entry_ref(namespace).or_default();
        let full = self.actions >= SUMS_MAX && !actions.contains_key(action);
        let policies = actions.entry_ref(if full { OTHER } else { action }).or_default();
        self.actions += usize::from(policies.is_empty());
        policies.entry_ref(policy).or_default()[outcome] += 1;
    }
}

fn outcome(allowed: bool, reason: Reason) -> usize {
    match reason {
        _ if allowed => 0,
        Reason::Blocked | Reason::Blocklisted => 2,
        _ => 1,
    }
}

pub(super) fn minute_of(at: Time) -> i64 {
    at.micros().div_euclid(MICROS_PER_MINUTE)
}

fn spread((minute, table): Minute, into: &mut Vec<Count>) {
    for (namespace, actions) in table {
        for (action, policies) in actions {
            for (policy, [allowed, denied, blocked]) in policies {
                let (namespace, action) = (namespace.clone(), action.clone());
                into.push(Count { minute, namespace, action, policy, allowed, denied, blocked });
            }
        }
    }
}

/// Threads take the tables in turn, once each.
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

    fn count_one(sums: &mut Sums, action: &str) {
        sums.add("default", action, "", 0);
    }

    #[test]
    fn actions_that_callers_make_up_are_counted_together() {
        let mut sums = Sums::default();
        (0..SUMS_MAX + 50).for_each(|number| count_one(&mut sums, &number.to_string()));
        count_one(&mut sums, "0");
        let actions = &sums.open["default"];
        assert_eq!(actions.len(), SUMS_MAX + 1);
        assert_eq!((actions[OTHER][""][0], actions["0"][""][0]), (50, 2));
    }

    #[test]
    fn minutes_that_nobody_takes_are_bounded() {
        let mut sums = Sums::default();
        for minute in 0..200 {
            sums.turn(minute);
            count_one(&mut sums, "login");
        }
        assert_eq!(sums.closed.len(), MINUTES_MAX);
        assert_eq!(sums.closed[0].0, 199 - MINUTES_MAX as i64);
    }
}
