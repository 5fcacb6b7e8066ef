//! The log lines that a test causes.

use std::io::{Write, sink};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// A second subscriber of the process. While there is only one, `tracing` asks the thread that
/// first reaches a log line whether it has a subscriber, and remembers a no for all threads.
static SECOND_SUBSCRIBER: LazyLock<Dispatch> =
    LazyLock::new(|| Dispatch::new(tracing_subscriber::fmt().with_writer(sink).finish()));

/// Log lines of the current thread.
#[derive(Clone, Default)]
pub struct LogLines(Arc<Mutex<Vec<u8>>>);

impl LogLines {
    /// Collects the lines of the current thread until the guard is dropped.
    pub fn capture() -> (Self, DefaultGuard) {
        LazyLock::force(&SECOND_SUBSCRIBER);
        let lines = Self::default();
        let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).finish();
        (lines, tracing::subscriber::set_default(subscriber))
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for LogLines {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}
