//! The exit codes of the process. Scripts rely on them: they must not change.

use std::process::ExitCode;

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Yes: allowed, valid, done.
    Yes = 0,
    /// No: denied, errors in a catalog, a failed scenario, or nothing found to act on.
    No = 1,
    /// The command line or its input is invalid.
    BadInput = 2,
    /// The server cannot be reached, or responded with a server error.
    Unreachable = 3,
    /// The work is done, but standard output cannot be written.
    OutputFailed = 4,
}

impl Exit {
    /// [`Exit::Yes`] if `holds`, else `other`.
    pub fn yes_or(holds: bool, other: Self) -> Self {
        if holds { Self::Yes } else { other }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
