//! What can go wrong with a call: the input, or the store. A denial is neither.

use catraca_core::refusal::Refusal;
use thiserror::Error;

use crate::store::StoreError;

/// Why a call has no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is wrong; nothing changed and the gate stays shut.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
