//! The log: lines on standard error, for people or as JSON, written by a thread of its own.
//!
//! Whoever reads our standard error may stop reading; a decision must not wait for them. Must not
//! print a value as it came: fields are quoted, and control characters escaped.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use catraca::Time;
use tracing::Level;

/// Lines that wait to be written; what comes then is dropped.
const WAITING_MAX: usize = 1_024;
/// Lines about single callers in one second; an attack must not fill a disk.
const LINES_PER_SECOND: u64 = 100;
/// The same for lines of single calls, which must not take the room of those.
const CALLS_PER_SECOND: u64 = 1_000;
/// How long the last lines may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// For people.
    #[default]
    Text,
    /// One object per line.
    Json,
}

/// The log of the process.
#[derive(Clone)]
pub struct Logs {
    lines: SyncSender<Line>,
    kept: Arc<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Of lines about callers.
    callers: Second,
    /// Of lines about single calls.
    calls: Second,
    dropped: AtomicU64,
}

/// The second that is being counted, and its lines.
#[derive(Default)]
struct Second {
    at: AtomicI64,
    lines: AtomicU64,
}

impl Second {
    fn takes(&self, at: Time, most: u64) -> bool {
        let second = at.micros().div_euclid(1_000_000);
        if self.at.swap(second, Ordering::Relaxed) != second {
            self.lines.store(0, Ordering::Relaxed);
        }
        self.lines.fetch_add(1, Ordering::Relaxed) < most
    }
}

enum Line {
    Text(Vec<u8>),
    /// Answered when all before it are written.
    Last(SyncSender<()>),
}

impl Logs {
    /// Starts the log of this process.
    pub fn start(style: Style, level: Level) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING_MAX);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || write(&waiting))?;
        let logs = Self { lines, kept: Arc::default() };
        let writer = logs.clone();
        let lines = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_target(false)
            .with_writer(move || writer.clone());
        // There is one log per process; whoever set another keeps it.
        let _ = match style {
            Style::Text => tracing::subscriber::set_global_default(lines.finish()),
            Style::Json => {
                let lines = lines.json().flatten_event(true);
                tracing::subscriber::set_global_default(lines.finish())
            }
        };
        Ok(logs)
    }

    /// Whether one more line about a caller may be written in this second; else it is counted.
    pub fn has_room(&self, at: Time) -> bool {
        self.counted(self.kept.callers.takes(at, LINES_PER_SECOND))
    }

    /// The same for a line about a single call.
    pub fn has_room_for_call(&self, at: Time) -> bool {
        self.counted(self.kept.calls.takes(at, CALLS_PER_SECOND))
    }

    fn counted(&self, room: bool) -> bool {
        if !room {
            self.kept.dropped.fetch_add(1, Ordering::Relaxed);
        }
        room
    }

    /// Lines that were not written.
    pub fn dropped(&self) -> u64 {
        self.kept.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything is written, but not for long.
    pub fn close(&self) {
        let (done, written) = sync_channel(1);
        if self.lines.try_send(Line::Last(done)).is_ok() {
            let _ = written.recv_timeout(FAREWELL);
        }
    }
}

impl Write for Logs {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Line::Text(line.to_vec())) {
            self.kept.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write(waiting: &Receiver<Line>) {
    while let Ok(line) = waiting.recv() {
        match line {
            // Nobody may be reading; then there is nobody to tell either.
            Line::Text(text) => drop(io::stderr().write_all(&text)),
            Line::Last(done) => drop(done.send(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_room_for_so_many_lines_and_the_rest_is_counted() {
        let (lines, _waiting) = sync_channel(1);
        let mut logs = Logs { lines, kept: Arc::default() };
        let at = |second: i64| Time::from_micros(second * 1_000_000 + 5);
        let room = (0..150).filter(|_| logs.has_room(at(1))).count() as u64;
        assert_eq!((room, logs.dropped()), (LINES_PER_SECOND, 50));
        assert!(logs.has_room_for_call(at(1)), "calls have room of their own");
        assert!(logs.has_room(at(2)));
        logs.write_all(b"one fits\n").unwrap();
        logs.write_all(b"the next does not, and nobody waits\n").unwrap();
        assert_eq!(logs.dropped(), 51);
    }
}
