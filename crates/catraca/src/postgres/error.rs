//! Why the store could not be opened, and what a failing call is to the engine.
//!
//! Must not show a password, nor the values of a statement.

use super::place::NotAPlace;
use super::trouble::Trouble;
use crate::store::StoreError;

/// Why the store could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// The URL is not sound.
    #[error("`{url}` names no database: {reason}; write postgres://USER@HOST/DATABASE")]
    Url {
        /// What was written, without a password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Another program's tables are where ours would be.
    #[error(
        "{place} has a schema `catraca_store` that another program made: name another database \
         in `[store]`"
    )]
    Taken {
        /// The database.
        place: String,
    },
    /// A later program made the schema.
    #[error(
        "the store in {place} has schema {found}, and this program knows schemas up to {known}: \
         start the newer program"
    )]
    Newer {
        /// The database.
        place: String,
        /// Its schema.
        found: i64,
        /// The newest schema that is known here.
        known: i64,
    },
    /// The role may not do what is needed.
    #[error(
        "cannot make the store in {place}: {reason}; let its owner run \
         `GRANT CREATE ON DATABASE … TO …`, or start once as its owner"
    )]
    Forbidden {
        /// The database.
        place: String,
        /// What the server said.
        reason: String,
    },
    /// The server cannot be reached, or refused.
    #[error("cannot open the store in {place}: {reason}")]
    Failed {
        /// The database.
        place: String,
        /// Why.
        reason: String,
    },
}

impl PostgresError {
    pub(super) fn of(place: &str, trouble: &Trouble) -> Self {
        let (place, reason) = (place.to_owned(), in_full(trouble));
        match trouble.code() {
            Some("42501") => Self::Forbidden { place, reason },
            _ => Self::Failed { place, reason },
        }
    }
}

impl From<NotAPlace> for PostgresError {
    fn from(wrong: NotAPlace) -> Self {
        Self::Url { url: wrong.url, reason: wrong.reason }
    }
}

/// What a call answers that met this.
pub(super) fn store_error(trouble: &Trouble) -> StoreError {
    match trouble.code() {
        Some("55P03" | "57014") => StoreError::unavailable(super::HELD),
        Some("53100") => StoreError::full("cells: the disk of PostgreSQL is full"),
        _ => StoreError::unavailable(in_full(trouble)),
    }
}

/// What happened, and where it is known, what to do.
fn in_full(trouble: &Trouble) -> String {
    let hint = match trouble.code() {
        Some("25006" | "0A000") => {
            "; this may be a standby: name the primary, or add target_session_attrs=read-write"
        }
        Some("3F000" | "42P01" | "42883") => {
            "; the schema `catraca_store` is not whole: start this node again"
        }
        Some("53300") => "; give this role more connections, or each node fewer",
        Some("28P01" | "28000") => "; look at the user and the password of the URL",
        _ => "",
    };
    format!("{trouble}{hint}")
}
