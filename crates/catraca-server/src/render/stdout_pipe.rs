//! Standard output that tolerates a closed pipe, as with `catraca check … | head -1`.
//!
//! After the reader closes the pipe, further output is discarded and the command continues, so
//! that its exit code does not depend on the reader. Other write errors are returned.

use std::fmt;
use std::io::{self, ErrorKind, StdoutLock, Write, stdout};

/// Standard output cannot be written, for example on a full disk. The command's work was done.
#[derive(Debug)]
pub struct StdoutError(io::Error);

impl fmt::Display for StdoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "standard output cannot be written: {}", self.0)
    }
}

impl std::error::Error for StdoutError {}

impl StdoutError {
    /// Whether this error is in the chain of `error`.
    pub fn is_cause_of(error: &anyhow::Error) -> bool {
        let causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
        causes.filter_map(io::Error::get_ref).any(|inner| inner.is::<Self>())
    }
}

/// Standard output that discards writes after a broken pipe.
pub struct StdoutPipe<W = StdoutLock<'static>> {
    out: W,
    closed: bool,
}

impl StdoutPipe {
    /// This process's standard output.
    pub fn stdout() -> Self {
        Self { out: stdout().lock(), closed: false }
    }
}

impl<W: Write> StdoutPipe<W> {
    /// Turns a broken pipe into success with the value `instead`, and other errors into
    /// [`StdoutError`].
    fn tolerate_broken_pipe<T>(&mut self, result: io::Result<T>, instead: T) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(instead)
            }
            // `write_all` retries an interrupted write.
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                Err(io::Error::new(error.kind(), StdoutError(error)))
            }
            result => result,
        }
    }
}

impl<W: Write> Write for StdoutPipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let result = self.out.write(bytes);
        self.tolerate_broken_pipe(result, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let result = self.out.flush();
        self.tolerate_broken_pipe(result, ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that fails with this error after this many bytes.
    struct FailingWriter(usize, ErrorKind);

    impl Write for FailingWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(self.1)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_no_error_and_a_full_disk_is() {
        let mut pipe = StdoutPipe { out: FailingWriter(3, ErrorKind::BrokenPipe), closed: false };
        assert!(pipe.write_all(b"abc").is_ok() && !pipe.closed);
        assert!(pipe.write_all(b"d").is_ok() && pipe.closed);
        assert!(pipe.write_all(b"e").is_ok() && pipe.flush().is_ok());
        let mut full = StdoutPipe { out: FailingWriter(0, ErrorKind::StorageFull), closed: false };
        assert!(full.write_all(b"a").is_err());
    }
}
