//! Why an operation failed. A denial is not an error.

use crate::error::Error;
#[cfg(feature = "locks")]
use crate::locks::LockError;
#[cfg(feature = "records")]
use crate::records::RecordsError;
use catraca_core::refusal::Refusal;

/// Why an operation of the [`crate::App`] failed. An invalid operation has changed nothing.
///
/// ```
/// use catraca::{App, AppError, Catalog, Check, Engine};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?;
/// let app = App::local(Engine::new(catalog)).build();
/// let too_many = vec![Check::new("api", [("ip", "198.51.100.7")]); 101];
/// match app.check_batch(&too_many).await {
///     Err(AppError::Invalid { code, detail }) => println!("{code}: {detail}"),
///     Err(other) => return Err(other.into()),
///     Ok(_) => unreachable!("a batch has at most 100 checks"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// The call is invalid, or the store failed.
    #[error(transparent)]
    Call(#[from] Error),
    /// An argument is invalid.
    #[error("{detail}")]
    Invalid {
        /// The code of the error, such as `text-too-long`.
        code: &'static str,
        /// What is invalid, and how to correct it.
        detail: String,
    },
    /// The object of the operation does not exist.
    #[error("{detail}")]
    NotFound {
        /// The code of the error, such as `unknown-block`.
        code: &'static str,
        /// What does not exist.
        detail: String,
    },
    /// The operation needs records, and there are none.
    #[error("there are no records, and this operation needs them")]
    NoRecords,
    /// The records could not be read or written.
    #[cfg(feature = "records")]
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// No namespace was stated, and the records, which know which ones there are, were never read.
    #[cfg(feature = "records")]
    #[error(
        "the records cannot be read, so it is unknown which namespaces there are: name one in \
         `namespace`, or retry"
    )]
    UnknownNamespaces,
    /// The operation on locks failed.
    #[cfg(feature = "locks")]
    #[error(transparent)]
    Locks(#[from] LockError),
    /// The task of the operation ended without a result.
    #[error("the operation ended without a result: {why}")]
    Interrupted {
        /// The cause.
        why: String,
    },
}

impl AppError {
    pub(super) fn invalid(code: &'static str, detail: impl Into<String>) -> Self {
        Self::Invalid { code, detail: detail.into() }
    }

    #[cfg(feature = "records")]
    pub(super) fn not_found(code: &'static str, detail: impl Into<String>) -> Self {
        Self::NotFound { code, detail: detail.into() }
    }
}

impl From<Refusal> for AppError {
    fn from(refusal: Refusal) -> Self {
        Self::Call(refusal.into())
    }
}

impl From<tokio::task::JoinError> for AppError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Interrupted { why: error.to_string() }
    }
}
