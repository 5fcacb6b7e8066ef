//! Errors of the records.
//!
//! Errors are logged, so they contain no private value and no password.

use std::io;
use std::path::PathBuf;

/// Why the records could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL has an unknown scheme or no path.
    #[error(
        "`{url}` is not a URL of records: write sqlite:FILE, such as sqlite:catraca.db, or \
         postgres://USER@HOST/DATABASE"
    )]
    Url {
        /// The URL without its password.
        url: String,
    },
    /// The URL of a PostgreSQL database is invalid.
    #[error("`{url}` is not a database URL: {reason}; write postgres://USER@HOST/DATABASE")]
    Postgres {
        /// The URL without its password.
        url: String,
        /// The invalid part of the URL.
        reason: String,
    },
    /// This build has no PostgreSQL support.
    #[error(
        "`{url}` needs a build with the feature `postgres`: use such a build, or write sqlite:FILE"
    )]
    NotBuilt {
        /// The URL without its password.
        url: String,
    },
    /// The schema `catraca` exists and was created by another program.
    #[error(
        "{place} has a schema `catraca` that another program created: name another database in \
         `[records]`"
    )]
    Taken {
        /// The URL without its password.
        place: String,
    },
    /// Another process has the file open.
    #[error(
        "the records {} are in use by {holder}: stop it, or name another file in `[records]`; \
         several nodes need a shared store and postgres: records",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
        /// The process that has it open, if known.
        holder: String,
    },
    /// A newer version of this program has migrated the schema.
    #[error(
        "the records {} have schema {found}, and this program supports schemas up to {known}: \
         start the newer program, or restore a backup made before the upgrade",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest schema version that this program supports.
        known: i64,
    },
    /// The file is a SQLite database of another program.
    #[error(
        "{} is the database of another program: name another file in `[records]`",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error(
        "the records {} are damaged: {reason}; restore a backup, or move the file and the \
         snapshot elsewhere to start without blocks, lists and history",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The first fault found.
        reason: String,
    },
    /// The target of a backup or of a restore exists.
    #[error("{} exists already: move it first, nothing is overwritten", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file or the database could not be opened.
    #[error("cannot open the records {}: {reason}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl OpenError {
    pub(super) fn io(path: &std::path::Path, error: &io::Error) -> Self {
        Self::Failed { path: path.to_owned(), reason: error.to_string() }
    }
}

/// Why a query or a task failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("records failed: {0}")]
pub struct RecordsError(pub(crate) String);

/// Why the database did not do what was asked. An open transaction is rolled back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DatabaseError {
    /// The database is unavailable, or its disk is full or fails: the transaction is tried again.
    #[error("{0}")]
    Down(String),
    /// A record is invalid for the database, or a stored row: trying again would not help.
    #[error("{0}")]
    Bad(String),
}

impl From<DatabaseError> for RecordsError {
    fn from(error: DatabaseError) -> Self {
        Self(error.to_string())
    }
}
