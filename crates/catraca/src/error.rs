//! Errors of a call: invalid input, or a failing store. A denial is not an error.

use catraca_core::refusal::Refusal;
use thiserror::Error;

use crate::store::StoreError;

/// Why a call has no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is invalid. Nothing was changed, and the request must not pass.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
