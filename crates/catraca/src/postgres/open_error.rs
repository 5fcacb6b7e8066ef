//! Errors of opening the store, and the store error of a failed call. They contain neither
//! passwords nor the values of statements.

use super::database_url::InvalidDatabaseUrl;
use super::failure::PostgresFailure;
use crate::store::StoreError;

/// Why the store could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// The URL is invalid.
    #[error("`{url}` names no database: {reason}; write postgres://USER@HOST/DATABASE")]
    Url {
        /// The URL without its password.
        url: String,
        /// The cause.
        reason: String,
    },
    /// Another program has tables in a schema of this name.
    #[error(
        "{database} has a schema `catraca_store` of another program: name another database in \
         `[store]`"
    )]
    Taken {
        /// The database.
        database: String,
    },
    /// A newer version of the program made the schema.
    #[error(
        "the store in {database} has schema {found}, and this program knows schemas up to {known}: \
         start the newer program"
    )]
    Newer {
        /// The database.
        database: String,
        /// The version of its schema.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The role lacks a permission.
    #[error(
        "cannot create the store in {database}: {reason}; let its owner run \
         `GRANT CREATE ON DATABASE … TO …`, or start once as its owner"
    )]
    Forbidden {
        /// The database.
        database: String,
        /// The error of the server.
        reason: String,
    },
    /// The server cannot be reached, or answered with an error.
    #[error("cannot open the store in {database}: {reason}")]
    Failed {
        /// The database.
        database: String,
        /// The cause.
        reason: String,
    },
}

impl PostgresError {
    pub(super) fn of(database: &str, failure: &PostgresFailure) -> Self {
        let database = database.to_owned();
        let reason = describe(failure);
        match failure.code() {
            // insufficient_privilege
            Some("42501") => Self::Forbidden { database, reason },
            _ => Self::Failed { database, reason },
        }
    }
}

impl From<InvalidDatabaseUrl> for PostgresError {
    fn from(invalid: InvalidDatabaseUrl) -> Self {
        Self::Url { url: invalid.url, reason: invalid.reason }
    }
}

/// The store error of a failed call.
pub(super) fn store_error(failure: &PostgresFailure) -> StoreError {
    match failure.code() {
        // lock_not_available, query_canceled (a timeout)
        Some("55P03" | "57014") => StoreError::unavailable(super::ROWS_LOCKED),
        // disk_full
        Some("53100") => StoreError::full("cells: the disk of PostgreSQL is full"),
        _ => StoreError::unavailable(describe(failure)),
    }
}

/// The failure and, for known codes, the remedy.
fn describe(failure: &PostgresFailure) -> String {
    let hint = match failure.code() {
        // read_only_sql_transaction, feature_not_supported
        Some("25006" | "0A000") => {
            "; this may be a standby: name the primary, or add target_session_attrs=read-write"
        }
        // The schema, a table or a function is missing.
        Some("3F000" | "42P01" | "42883") => {
            "; the schema `catraca_store` is incomplete: restart this node to migrate it"
        }
        // too_many_connections
        Some("53300") => "; give this role more connections, or each node fewer",
        // invalid_password, invalid_authorization_specification
        Some("28P01" | "28000") => "; check the user and the password of the URL",
        _ => "",
    };
    format!("{failure}{hint}")
}
