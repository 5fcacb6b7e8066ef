//! Erasures that other nodes have ordered, until the records of this node have carried them out.
//!
//! They run in the background: no node waits for the disk of another. What fails is tried again,
//! and reported until then.

use std::collections::VecDeque;
use std::sync::Arc;

use catraca_core::time::{Span, Time};
use parking_lot::Mutex;

use crate::records::{AttributeValue, Records};

/// The most erasures that wait for the records.
const WAITING_MAX: usize = 100_000;
/// The pause after one that failed.
const PAUSE: Span = Span::from_secs(5);

/// What must be erased from the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Erasure {
    pub about: Vec<AttributeValue>,
    /// The only namespace; absent means all.
    pub within: Option<String>,
    /// When it was ordered.
    pub at: Time,
}

#[derive(Debug, Default)]
pub(super) struct PendingErasures(Mutex<ErasureQueue>);

#[derive(Debug, Default)]
struct ErasureQueue {
    waiting: VecDeque<Erasure>,
    is_running: bool,
    /// Why the last one failed, and when it is tried again.
    error: Option<String>,
    next_try: Time,
    /// Those for which there was no room, since the start.
    dropped: u64,
}

impl PendingErasures {
    /// Adds an erasure. The notice of one that is dropped because there are too many is read again
    /// at the next start.
    pub fn add(&self, erasure: Erasure) {
        let mut queue = self.0.lock();
        match queue.waiting.len() < WAITING_MAX {
            true => queue.waiting.push_back(erasure),
            false => queue.dropped += 1,
        }
    }

    /// Carries out what waits, in the background.
    pub fn start(self: &Arc<Self>, records: &Arc<Records>, now: Time) {
        if !self.begin(now) {
            return;
        }
        let queue = Arc::clone(self);
        let records = Arc::clone(records);
        drop(tokio::task::spawn_blocking(move || {
            queue.carry_out(now, |Erasure { about, within, at }| {
                let erased = records.erase_history(about, within.as_deref(), *at);
                erased.map(drop).map_err(|error| error.to_string())
            });
        }));
    }

    /// Why personal data is still in the records, if so.
    pub fn error(&self) -> Option<String> {
        let queue = self.0.lock();
        if queue.dropped > 0 {
            return Some(format!(
                "{} erasures of other nodes were dropped because {WAITING_MAX} wait for the \
                 records of this node: restart it when its records can be written; it then reads \
                 them again",
                queue.dropped
            ));
        }
        let error = queue.error.as_ref()?;
        Some(format!(
            "{} erasures of other nodes are not carried out in the records of this one, and are \
             tried again: {error}",
            queue.waiting.len()
        ))
    }

    /// Whether something waits and nothing runs.
    fn begin(&self, now: Time) -> bool {
        let mut queue = self.0.lock();
        let is_due = !queue.is_running && !queue.waiting.is_empty() && now >= queue.next_try;
        queue.is_running |= is_due;
        is_due
    }

    fn carry_out(&self, now: Time, mut erase: impl FnMut(&Erasure) -> Result<(), String>) {
        let mut error = None;
        while error.is_none() {
            let Some(erasure) = self.0.lock().waiting.front().cloned() else { break };
            match erase(&erasure) {
                Ok(()) => drop(self.0.lock().waiting.pop_front()),
                Err(reason) => error = Some(reason),
            }
        }
        let mut queue = self.0.lock();
        queue.next_try = if error.is_some() { now.after(PAUSE) } else { now };
        queue.error = error;
        queue.is_running = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the result of an erasure that another node had ordered was dropped, so what its
    /// records could not erase stayed until a restart, and nothing said so.
    #[test]
    fn an_erasure_that_fails_is_reported_and_tried_again() {
        let pending = PendingErasures::default();
        let at = |seconds| Time::ZERO.after(Span::from_secs(seconds));
        let erasure = Erasure { about: Vec::new(), within: None, at: at(1) };
        pending.add(erasure.clone());
        assert!(pending.begin(at(1)) && !pending.begin(at(1)), "one at a time");
        pending.carry_out(at(1), |_| Err("disk full".to_owned()));
        let error = pending.error().unwrap();
        assert!(error.contains("1 erasures") && error.contains("disk full"), "{error}");
        assert!(!pending.begin(at(5)), "not at once");
        assert!(pending.begin(at(6)));
        let mut erased = Vec::new();
        pending.carry_out(at(6), |erasure| {
            erased.push(erasure.clone());
            Ok(())
        });
        assert_eq!((erased, pending.error()), (vec![erasure], None));
        assert!(!pending.begin(at(7)), "nothing waits");
    }

    /// Regression: the next success said that all were carried out.
    #[test]
    fn an_erasure_that_was_dropped_stays_a_problem() {
        let pending = PendingErasures::default();
        let erasure = Erasure { about: Vec::new(), within: None, at: Time::ZERO };
        for _ in 0..=WAITING_MAX {
            pending.add(erasure.clone());
        }
        assert!(pending.begin(Time::ZERO));
        pending.carry_out(Time::ZERO, |_| Ok(()));
        let error = pending.error().unwrap();
        assert!(error.contains("1 erasures of other nodes were dropped"), "{error}");
    }
}
