//! Logs the panics of tasks in the background: the panic hook prints to standard error alone, and
//! not which task was started again.

use std::collections::BTreeMap;
use std::time::Duration;

use catraca::supervise::{TaskPanics, task_panics};
use tracing::error;

/// How often the counts are compared with those that were logged.
const INTERVAL: Duration = Duration::from_secs(1);

/// Logs panics until the runtime stops.
pub async fn log_task_panics() {
    let mut logged = BTreeMap::new();
    loop {
        for TaskPanics { task, count, message, .. } in task_panics() {
            if logged.insert(task, count) != Some(count) {
                error!(task, count, message, "background task panicked and was started again");
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
