//! Exit codes: stable, so that scripts may rely on them.

use std::process::ExitCode;

/// What the process says as it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Yes: fine, passed, done.
    Yes = 0,
    /// No: denied, errors in a catalog, a scenario that differs, nothing there to act on.
    No = 1,
    /// The command line or its input is wrong.
    Wrong = 2,
    /// The server cannot be reached, or cannot do its work.
    Unreachable = 3,
    /// It was done, and could not be told: standard output takes nothing.
    Untold = 4,
}

impl Exit {
    /// [`Exit::Yes`] if it holds, else the other.
    pub fn yes_or(holds: bool, other: Self) -> Self {
        if holds { Self::Yes } else { other }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
