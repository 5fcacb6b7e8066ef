//! Standard output whose reader may leave early, as `head` does.
//!
//! What was found does not depend on who reads on, so the rest is thrown away and the work goes on
//! to its exit code. Must not hide any other trouble.

use std::fmt;
use std::io::{self, ErrorKind, StdoutLock, Write, stdout};

/// Standard output that takes nothing, such as on a full disk. Whatever was to be told was done.
#[derive(Debug)]
pub struct Untold(io::Error);

impl fmt::Display for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "standard output cannot be written: {}", self.0)
    }
}

impl std::error::Error for Untold {}

impl Untold {
    /// Whether this is why something failed.
    pub fn caused(error: &anyhow::Error) -> bool {
        let causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
        causes.filter_map(io::Error::get_ref).any(|inner| inner.is::<Self>())
    }
}

/// Standard output, until its reader leaves.
pub struct Outlet<W = StdoutLock<'static>> {
    out: W,
    left: bool,
}

impl Outlet {
    /// This process's standard output.
    pub fn stdout() -> Self {
        Self { out: stdout().lock(), left: false }
    }
}

impl<W: Write> Outlet<W> {
    /// What became of a write, or what stands for it when nobody reads.
    fn unless_left<T>(&mut self, done: io::Result<T>, instead: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.left = true;
                Ok(instead)
            }
            // Interrupted is tried again by whoever writes.
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                Err(io::Error::new(error.kind(), Untold(error)))
            }
            done => done,
        }
    }
}

impl<W: Write> Write for Outlet<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left {
            return Ok(bytes.len());
        }
        let done = self.out.write(bytes);
        self.unless_left(done, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.left {
            return Ok(());
        }
        let done = self.out.flush();
        self.unless_left(done, ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that fails after some bytes.
    struct Ends(usize, ErrorKind);

    impl Write for Ends {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(self.1)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_left_is_no_trouble_and_a_full_disk_is() {
        let mut outlet = Outlet { out: Ends(3, ErrorKind::BrokenPipe), left: false };
        assert!(outlet.write_all(b"abc").is_ok() && !outlet.left);
        assert!(outlet.write_all(b"d").is_ok() && outlet.left);
        assert!(outlet.write_all(b"e").is_ok() && outlet.flush().is_ok());
        let mut full = Outlet { out: Ends(0, ErrorKind::StorageFull), left: false };
        assert!(full.write_all(b"a").is_err());
    }
}
