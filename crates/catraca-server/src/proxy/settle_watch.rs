//! Settles the checks of responses that are still in progress when their `hold` is about to end.
//!
//! hyper does not poll the body of a response while its client reads nothing, so the body cannot
//! see its own deadline. One task watches all of them: a task for each would wake a thread for
//! every request.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The check of a response in progress.
pub trait WatchedCheck: Send + Sync {
    /// Settles the check with what is known.
    fn end_check(&self);
}

/// The deadlines of responses in progress.
#[derive(Default)]
pub struct SettleWatch {
    watched: Mutex<WatchedResponses>,
    /// A deadline was added that is earlier than all others.
    is_earlier: Notify,
}

#[derive(Default)]
struct WatchedResponses {
    /// By deadline, and by number, because several may have the same deadline.
    checks: BTreeMap<(Instant, u64), Weak<dyn WatchedCheck>>,
    next_number: u64,
    /// Until when the task sleeps; absent if it sleeps until it is notified.
    wakes_at: Option<Instant>,
}

impl SettleWatch {
    /// Watches a response until the entry is dropped.
    pub fn add(self: &Arc<Self>, at: Instant, check: Weak<dyn WatchedCheck>) -> WatchEntry {
        let mut watched = self.watched.lock();
        let key = (at, watched.next_number);
        watched.next_number += 1;
        watched.checks.insert(key, check);
        // Most deadlines are later than the last one: the task goes on sleeping.
        let is_earlier = watched.wakes_at.is_none_or(|wakes_at| at < wakes_at);
        if is_earlier {
            watched.wakes_at = Some(at);
            self.is_earlier.notify_one();
        }
        WatchEntry { watch: Arc::clone(self), key }
    }

    /// Runs until the server ends.
    pub async fn run(&self) {
        loop {
            let wakes_at = self.watched.lock().wakes_at;
            let sleep = async {
                match wakes_at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = sleep => {}
                () = self.is_earlier.notified() => continue,
            }
            // Without the lock: a settle in memory runs here.
            for check in self.take_due(Instant::now()) {
                check.end_check();
            }
        }
    }

    fn take_due(&self, now: Instant) -> Vec<Arc<dyn WatchedCheck>> {
        let mut watched = self.watched.lock();
        let mut due = Vec::new();
        while let Some(first) = watched.checks.first_entry().filter(|own| own.key().0 <= now) {
            due.extend(first.remove().upgrade());
        }
        watched.wakes_at = watched.checks.keys().next().map(|(at, _)| *at);
        due
    }
}

/// Ends the watch of a response when it is dropped.
pub struct WatchEntry {
    watch: Arc<SettleWatch>,
    key: (Instant, u64),
}

impl Drop for WatchEntry {
    fn drop(&mut self) {
        self.watch.watched.lock().checks.remove(&self.key);
    }
}
