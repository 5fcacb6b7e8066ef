//! The log: lines on standard error, as text or JSON, written by a thread of its own.
//!
//! The reader of standard error may stop reading, and a decision must not wait for it: lines that
//! find the queue full are dropped and counted. Values are quoted and control characters escaped,
//! so that no value can look like another line.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use catraca::Time;
use tracing::Level;

/// The most lines in the queue; further lines are dropped.
const QUEUE_MAX: usize = 1_024;
/// Lines about single callers in one second, so that an attack cannot fill the disk.
const LINES_PER_SECOND: u64 = 100;
/// The same for DEBUG lines about single calls, which have a budget of their own so that they
/// cannot crowd out the others.
const CALLS_PER_SECOND: u64 = 1_000;
/// How long `close` waits for the queue.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogStyle {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// How log lines name callers. Private values are never logged in clear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogSubjects {
    /// By digests and pseudonyms.
    #[default]
    Pseudonym,
    /// By the values of attributes that are not private.
    Clear,
}

/// The log of the process. Clones write to the same queue.
#[derive(Clone)]
pub struct Logs {
    queue: SyncSender<LogMessage>,
    limits: Arc<LogLimits>,
}

#[derive(Default)]
struct LogLimits {
    /// Budget of lines about callers.
    callers: LinesPerSecond,
    /// Budget of lines about single calls.
    calls: LinesPerSecond,
    /// Lines dropped, over a budget or with a full queue.
    dropped: AtomicU64,
}

/// Counts the lines of the current second. Concurrent callers may let a few more lines pass when
/// the second changes, which is harmless.
#[derive(Default)]
struct LinesPerSecond {
    second: AtomicI64,
    lines: AtomicU64,
}

impl LinesPerSecond {
    fn try_take(&self, at: Time, max: u64) -> bool {
        let second = at.micros().div_euclid(1_000_000);
        if self.second.swap(second, Ordering::Relaxed) != second {
            self.lines.store(0, Ordering::Relaxed);
        }
        self.lines.fetch_add(1, Ordering::Relaxed) < max
    }
}

enum LogMessage {
    Line(Vec<u8>),
    /// Acknowledged when all messages before it are written.
    Flush(SyncSender<()>),
}

impl Logs {
    /// Starts the log and makes it the tracing subscriber of the process.
    pub fn start(style: LogStyle, level: Level) -> io::Result<Self> {
        let (queue, messages) = sync_channel(QUEUE_MAX);
        let logs = Self { queue, limits: Arc::default() };
        let limits = Arc::clone(&logs.limits);
        let write_lines = move || write(&messages, &limits);
        std::thread::Builder::new().name("log".to_owned()).spawn(write_lines)?;
        let writer = logs.clone();
        let format = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_target(false)
            .with_writer(move || writer.clone());
        // A process has one subscriber; one that was set before stays.
        let _ = match style {
            LogStyle::Text => tracing::subscriber::set_global_default(format.finish()),
            LogStyle::Json => {
                let format = format.json().flatten_event(true);
                tracing::subscriber::set_global_default(format.finish())
            }
        };
        Ok(logs)
    }

    /// Takes one line about a caller from the budget of this second; false, and counted as dropped,
    /// if it is used up.
    pub fn try_reserve_line(&self, at: Time) -> bool {
        self.count_refusal(self.limits.callers.try_take(at, LINES_PER_SECOND))
    }

    /// The same for a DEBUG line about a single call.
    pub fn try_reserve_call_line(&self, at: Time) -> bool {
        self.count_refusal(self.limits.calls.try_take(at, CALLS_PER_SECOND))
    }

    fn count_refusal(&self, allowed: bool) -> bool {
        if !allowed {
            self.limits.dropped.fetch_add(1, Ordering::Relaxed);
        }
        allowed
    }

    /// Lines that were dropped.
    pub fn dropped_lines(&self) -> u64 {
        self.limits.dropped.load(Ordering::Relaxed)
    }

    /// Waits until the queue is written, for at most `CLOSE_TIMEOUT`.
    pub fn close(&self) {
        let (done, written) = sync_channel(1);
        if self.queue.try_send(LogMessage::Flush(done)).is_ok() {
            let _ = written.recv_timeout(CLOSE_TIMEOUT);
        }
    }
}

impl Write for Logs {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.queue.try_send(LogMessage::Line(line.to_vec())) {
            self.limits.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The thread that writes: ends when all senders are dropped.
fn write(messages: &Receiver<LogMessage>, limits: &LogLimits) {
    while let Ok(message) = messages.recv() {
        match message {
            // Standard error may be closed, or its disk full: the metric says it.
            LogMessage::Line(text) => {
                if io::stderr().write_all(&text).is_err() {
                    limits.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            LogMessage::Flush(done) => drop(done.send(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_over_the_budget_of_a_second_are_dropped_and_counted() {
        let (queue, _messages) = sync_channel(1);
        let mut logs = Logs { queue, limits: Arc::default() };
        let at = |second: i64| Time::from_micros(second * 1_000_000 + 5);
        let allowed = (0..150).filter(|_| logs.try_reserve_line(at(1))).count() as u64;
        assert_eq!((allowed, logs.dropped_lines()), (LINES_PER_SECOND, 50));
        assert!(logs.try_reserve_call_line(at(1)), "calls have a budget of their own");
        assert!(logs.try_reserve_line(at(2)));
        logs.write_all(b"one fits\n").unwrap();
        logs.write_all(b"the next is dropped without waiting\n").unwrap();
        assert_eq!(logs.dropped_lines(), 51);
    }
}
