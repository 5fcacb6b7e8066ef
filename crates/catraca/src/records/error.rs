//! What can go wrong with records, in the words of whoever has to fix it.
//!
//! Must not show a private value: errors are logged.

use std::io;
use std::path::PathBuf;

/// Why the records could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL names no database that is known here.
    #[error(
        "`{url}` are no records: write sqlite:FILE, such as sqlite:catraca.db, or \
         postgres://USER@HOST/DATABASE"
    )]
    Url {
        /// What was written, without a password.
        url: String,
    },
    /// The URL of a PostgreSQL database is not sound.
    #[error("`{url}` names no database: {reason}; write postgres://USER@HOST/DATABASE")]
    Postgres {
        /// What was written, without a password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// This program was built without the dialect.
    #[error("`{url}` needs a program built with the feature `postgres`: write sqlite:FILE")]
    NotBuilt {
        /// What was written, without a password.
        url: String,
    },
    /// Another program's tables are where ours would be.
    #[error(
        "{place} has a schema `catraca` that another program made: name another database in \
         `[records]`"
    )]
    Taken {
        /// The database.
        place: String,
    },
    /// Another process has them open.
    #[error(
        "the records {} are in use by {holder}: stop it, or name another file in `[records]`; \
         several nodes need a shared store and postgres: records",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
        /// Who has it, as far as is known.
        holder: String,
    },
    /// A later program wrote them.
    #[error(
        "the records {} have schema {found}, and this program knows schemas up to {known}: \
         start the newer program, or bring a backup made before the upgrade",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema that is known here.
        known: i64,
    },
    /// A database of something else.
    #[error(
        "{} is the database of another program: name another file in `[records]`",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is not what was written.
    #[error(
        "the records {} are damaged: {reason}; bring a backup, or move the file and the \
         snapshot away to start without blocks, lists and history",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There is a file where a backup was to be put back.
    #[error("{} exists already: move it away, so that nothing is overwritten", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
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

/// Why the records did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the records did not answer: {0}")]
pub struct RecordsError(pub(super) String);

/// Why nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WriteError {
    /// The disk is full or fails: the same will be written later.
    #[error("{0}")]
    Down(String),
    /// The record itself cannot be written, now or ever.
    #[error("{0}")]
    Bad(String),
}
