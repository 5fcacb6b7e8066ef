//! Work in the background, for which no request waits: whether it works, and why not.
//!
//! A failure is logged when it begins and when it ends, counted, and a problem in `/readyz` until
//! the work succeeds again. A panic is a failure: the work is tried again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tracing::{info, warn};

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundTask {
    /// Writes the snapshot of the counters.
    Snapshot,
    /// Deletes records that are older than their retention.
    Purge,
    /// Looks whether the records are written, for the log.
    RecordsHealth,
    /// Looks at the files of the catalog.
    FileWatch,
    /// Removes expired leases, and receives notices of freed names.
    Locks,
    /// Takes the balances of the DICT over.
    DictPoll,
}

impl BackgroundTask {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Snapshot,
        Self::Purge,
        Self::RecordsHealth,
        Self::FileWatch,
        Self::Locks,
        Self::DictPoll,
    ];

    /// The label in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Purge => "purge",
            Self::RecordsHealth => "records-health",
            Self::FileWatch => "file-watch",
            Self::Locks => "locks",
            Self::DictPoll => "dict-poll",
        }
    }

    /// The consequence of a failure that lasts.
    fn consequence(self) -> &'static str {
        match self {
            Self::Snapshot => "after a crash, the next start restores older counters",
            Self::Purge => "records stay longer than their retention says",
            Self::RecordsHealth => "records that cannot be written are not in the log",
            Self::FileWatch => "a changed catalog is not applied before a reload is ordered",
            Self::DictPoll => "the buckets may drift from those of the DICT",
            Self::Locks => "locks are granted and released nevertheless",
        }
    }
}

/// The state of all pieces of work.
#[derive(Debug, Default)]
pub struct BackgroundTasks {
    states: [TaskState; BackgroundTask::ALL.len()],
}

#[derive(Debug, Default)]
struct TaskState {
    failures: AtomicU64,
    /// Why it failed, if it failed last.
    error: Mutex<Option<String>>,
}

impl BackgroundTasks {
    /// Does a piece of work and notes how it ended. Returns the result, if it succeeded.
    pub fn run<T>(
        &self,
        task: BackgroundTask,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Option<T> {
        // The next try starts over, so a state that the panic left half-changed is not used.
        let done = catch_unwind(AssertUnwindSafe(work));
        match done.unwrap_or_else(|panic| Err(panic_text(&*panic))) {
            Ok(value) => {
                self.note(task, None);
                Some(value)
            }
            Err(why) => {
                self.note(task, Some(why));
                None
            }
        }
    }

    /// Notes how a piece of work ended: with an error, or well.
    pub fn note(&self, task: BackgroundTask, error: Option<String>) {
        let state = &self.states[task as usize];
        if error.is_some() {
            state.failures.fetch_add(1, Ordering::Relaxed);
        }
        let mut last = state.error.lock();
        let what = task.as_str();
        match (&*last, &error) {
            (None, Some(why)) => {
                let consequence = task.consequence();
                warn!(task = what, why, consequence, "background work fails; it is tried again");
            }
            (Some(_), None) => info!(task = what, "background work succeeds again"),
            _ => {}
        }
        *last = error;
    }

    /// Why background work fails, with the consequence: one text for each task that failed last.
    pub fn problems(&self) -> Vec<String> {
        let problem = |task: &BackgroundTask| {
            let why = self.states[*task as usize].error.lock().clone()?;
            Some(format!("{}: {why}; {}", task.as_str(), task.consequence()))
        };
        BackgroundTask::ALL.iter().filter_map(problem).collect()
    }

    /// Whether a task failed last, and how often it failed.
    pub fn state(&self, task: BackgroundTask) -> (bool, u64) {
        let state = &self.states[task as usize];
        (state.error.lock().is_some(), state.failures.load(Ordering::Relaxed))
    }
}

/// The message of a panic.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a panic of the maintenance thread or of the file watcher ended it for good, and
    /// a failed snapshot hid the failure of a purge.
    #[test]
    fn a_failure_or_a_panic_is_a_problem_until_the_work_succeeds() {
        let tasks = BackgroundTasks::default();
        let fails = || -> Result<(), String> { Err("disk full".to_owned()) };
        let panics = || -> Result<(), String> { panic!("index {}", 7) };
        assert_eq!(tasks.run(BackgroundTask::Snapshot, fails), None);
        assert_eq!(tasks.run(BackgroundTask::Purge, panics), None);
        assert_eq!(tasks.run(BackgroundTask::Purge, panics), None);
        let problems = tasks.problems();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("snapshot: disk full; after a crash"), "{problems:?}");
        assert!(problems[1].starts_with("purge: it panicked: index 7; "), "{problems:?}");
        assert_eq!(tasks.state(BackgroundTask::Purge), (true, 2));
        assert_eq!(tasks.run(BackgroundTask::Purge, || Ok(5)), Some(5));
        assert_eq!(tasks.state(BackgroundTask::Purge), (false, 2));
        assert_eq!(tasks.problems().len(), 1);
    }
}
