//! Measures for how long a busy machine keeps threads waiting for a core, so that a test can bound
//! the time that the product took.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(5);
/// The caller of a store, the thread of its connection and the server each wait for a core.
const THREADS_PER_CALL: u32 = 3;

/// A thread that sleeps in short steps and notes by how much it woke up late.
pub struct PauseWatch {
    longest_micros: Arc<AtomicU64>,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PauseWatch {
    /// Starts to measure.
    #[must_use]
    pub fn start() -> Self {
        let longest_micros = Arc::new(AtomicU64::new(0));
        let is_stopped = Arc::new(AtomicBool::new(false));
        let longest = Arc::clone(&longest_micros);
        let stopped = Arc::clone(&is_stopped);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                let begun = Instant::now();
                thread::sleep(STEP);
                let late = begun.elapsed().saturating_sub(STEP);
                longest.fetch_max(late.as_micros() as u64, Ordering::SeqCst);
            }
        });
        Self { longest_micros, is_stopped, thread: Some(thread) }
    }

    /// What the machine may have added to a call since the start.
    #[must_use]
    pub fn added_to_a_call(&self) -> Duration {
        Duration::from_micros(self.longest_micros.load(Ordering::SeqCst)) * THREADS_PER_CALL
    }
}

impl Drop for PauseWatch {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // It only sleeps and counts: it has nothing to report.
            let _ = thread.join();
        }
    }
}
