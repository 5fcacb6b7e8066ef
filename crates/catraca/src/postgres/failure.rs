//! Failures of calls to PostgreSQL, and whether the call may have been applied.
//!
//! The values of statements are not shown, because errors are logged.

use std::fmt;
use std::time::Duration;

use tokio_postgres::Error;

/// Why a call failed.
pub(crate) enum PostgresFailure {
    /// The server answered with an error: nothing was applied.
    Server(Error),
    /// The connection failed: whether the call was applied is unknown.
    ConnectionLost(String),
    /// No answer in time: whether the call was applied is unknown.
    TimedOut(Duration),
}

impl PostgresFailure {
    /// Classifies an error. Errors of class 08 (connection exception) and 57P (the server shuts
    /// down or ends the session) also end the connection, so the call counts as lost.
    pub(crate) fn of(error: Error) -> Self {
        let ends_connection = |code: &str| code.starts_with("57P") || code.starts_with("08");
        match error.as_db_error() {
            Some(db_error) if !ends_connection(db_error.code().code()) => Self::Server(error),
            _ => Self::ConnectionLost(describe(&error)),
        }
    }

    /// The SQLSTATE code of the server's error.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Server(error) => error.code().map(|code| code.code()),
            Self::ConnectionLost(_) | Self::TimedOut(_) => None,
        }
    }
}

impl fmt::Display for PostgresFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(error) => f.write_str(&describe(error)),
            Self::ConnectionLost(reason) => f.write_str(reason),
            Self::TimedOut(limit) if limit.subsec_millis() == 0 => {
                write!(f, "PostgreSQL did not answer within {} s", limit.as_secs())
            }
            Self::TimedOut(limit) => {
                write!(f, "PostgreSQL did not answer within {} ms", limit.as_millis())
            }
        }
    }
}

/// The error and its cause, without the detail of a server error, which may contain values.
fn describe(error: &Error) -> String {
    if let Some(db_error) = error.as_db_error() {
        let code = db_error.code().code();
        return format!("PostgreSQL answered: {} ({code})", db_error.message());
    }
    match std::error::Error::source(error) {
        Some(cause) => format!("PostgreSQL is out of reach: {cause}"),
        None => format!("PostgreSQL is out of reach: {error}"),
    }
}
