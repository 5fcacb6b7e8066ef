//! Why PostgreSQL did not answer as hoped, and what is known of the call then.
//!
//! Must not show the values of a statement: errors are logged.

use std::fmt;
use std::time::Duration;

use tokio_postgres::Error;

/// Why a call was not answered as hoped.
pub(crate) enum Trouble {
    /// The server answered with an error: nothing of the call remains.
    Said(Error),
    /// The connection failed: what became of the call is unknown.
    Lost(String),
    /// Time was up: what became of the call is unknown.
    Late(Duration),
}

impl Trouble {
    /// A server that shuts down also says so in an error; the call is then as lost as any.
    pub(crate) fn of(error: Error) -> Self {
        let ending = |code: &str| code.starts_with("57P") || code.starts_with("08");
        match error.as_db_error() {
            Some(said) if !ending(said.code().code()) => Self::Said(error),
            _ => Self::Lost(in_words(&error)),
        }
    }

    /// The code of what the server said.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Said(error) => error.code().map(|code| code.code()),
            Self::Lost(_) | Self::Late(_) => None,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(error) => f.write_str(&in_words(error)),
            Self::Lost(why) => f.write_str(why),
            Self::Late(patience) if patience.subsec_millis() == 0 => {
                write!(f, "PostgreSQL did not answer within {} s", patience.as_secs())
            }
            Self::Late(patience) => {
                write!(f, "PostgreSQL did not answer within {} ms", patience.as_millis())
            }
        }
    }
}

/// The error and what caused it; without the values of a statement, which only the detail names.
fn in_words(error: &Error) -> String {
    if let Some(said) = error.as_db_error() {
        return format!("PostgreSQL said: {} ({})", said.message(), said.code().code());
    }
    match std::error::Error::source(error) {
        Some(cause) => format!("PostgreSQL is out of reach: {cause}"),
        None => format!("PostgreSQL is out of reach: {error}"),
    }
}
