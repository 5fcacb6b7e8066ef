//! Tasks in the background that must run as long as their owner: one that panics is started again,
//! after a pause, and counted by its name. The counts are those of the process: a panic is a defect
//! of the program, whichever store or application its task belongs to.
//!
//! The panic itself is printed by the panic hook of the process.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The pause before a task that panicked is started again: one that panics at once must not use a
/// whole core.
const PAUSE: Duration = Duration::from_millis(250);

/// By the name of the task.
static PANICS: Mutex<BTreeMap<&str, TaskPanics>> = Mutex::new(BTreeMap::new());

/// How often a task in the background of this process has panicked and was started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPanics {
    /// The name of the task.
    pub task: &'static str,
    /// How often it has panicked.
    pub count: u64,
    /// The message of the last panic.
    pub message: String,
    /// When it was.
    pub at: Instant,
}

/// The tasks in the background of this process that have panicked. Each was started again.
pub fn task_panics() -> Vec<TaskPanics> {
    PANICS.lock().values().cloned().collect()
}

/// Runs a task until it returns. After a panic a new one is started.
///
/// ```
/// use catraca::supervise::{supervise, task_panics};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
/// let mut starts = 0;
/// runtime.block_on(supervise("refresh", || {
///     starts += 1;
///     let is_first = starts == 1;
///     async move { assert!(!is_first, "the first start fails") }
/// }));
/// assert_eq!(starts, 2);
/// assert_eq!(task_panics()[0].count, 1);
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn supervise<T: Future<Output = ()>>(task: &'static str, mut start: impl FnMut() -> T) {
    while let Err(message) = catch_panic(start()).await {
        note_panic(task, message);
        tokio::time::sleep(PAUSE).await;
    }
}

fn note_panic(task: &'static str, message: String) {
    let mut panics = PANICS.lock();
    let count = panics.get(task).map_or(1, |earlier| earlier.count + 1);
    panics.insert(task, TaskPanics { task, count, message, at: Instant::now() });
}

/// The output of a future, or the message of its panic.
pub(crate) async fn catch_panic<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = pin!(future);
    poll_fn(move |context| {
        // After a panic the future is not polled again.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic_text(&*panic))),
        }
    })
    .await
}

/// The message of a panic.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a task that panicked was gone until the process ended, and nothing said so.
    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_counted_and_started_again() {
        let mut starts = 0;
        let start = || {
            starts += 1;
            let number = starts;
            async move { assert!(number > 2, "impossible value {number}") }
        };
        supervise("a task of this test", start).await;
        let panics = task_panics().into_iter().find(|one| one.task == "a task of this test");
        let panics = panics.unwrap();
        assert_eq!((panics.count, &*panics.message), (2, "impossible value 2"));
    }
}
