//! What an answer from the records may lack.

/// Why an answer from the records may lack what has happened last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Incomplete {
    /// What was queued before the query was not written in time.
    Queued,
    /// The database of the records cannot be written.
    Unwritable,
}

impl Incomplete {
    /// The reason and the remedy, for the operator who asked.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => {
                "records that were queued before this query are not written yet, so the newest \
                 entries may be missing: repeat the query, and if this stays, see whether the \
                 database of the records is slow or locked"
            }
            Self::Unwritable => {
                "the records cannot be written, so the newest entries may be missing: /readyz \
                 names the cause"
            }
        }
    }
}
