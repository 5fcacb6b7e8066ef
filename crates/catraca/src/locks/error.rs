//! Why a call about locks was not answered with a yes or a no.
//!
//! Must not be used for a conflict: that is an answer.

use catraca_core::lock::LockRefusal;
use catraca_core::time::Span;
use thiserror::Error;

use super::wait::WAITERS_MAX;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LockError {
    /// The call is wrong.
    #[error(transparent)]
    Refused(#[from] LockRefusal),
    /// Leases of the process before may still be in force somewhere.
    #[error(
        "leases of the process before this one may not have run out: nothing is granted for {} s",
        wait.ceil_secs()
    )]
    Starting {
        /// How long from now on.
        wait: Span,
    },
    /// The process ends.
    #[error("this process is about to end: ask again, it may be back soon")]
    Stopping,
    /// What must be on disk is not.
    #[error("it could not be put on disk, so nobody knows whether it stands: {why}")]
    Unkept {
        /// Why.
        why: String,
    },
    /// The store that nodes share did not answer.
    #[error(
        "the store of locks cannot be asked, so nobody knows whether it stands: {why}; ask again, \
         with the same `request_id` if there is one"
    )]
    Away {
        /// Why.
        why: String,
    },
    /// Too many wait already.
    #[error("{WAITERS_MAX} callers wait for this already: try again later")]
    TooManyWaiters,
    /// Too many namespaces.
    #[error("there are too many namespaces with locks")]
    TooManyNamespaces,
}

impl LockError {
    pub(super) fn unkept(why: &dyn std::fmt::Display) -> Self {
        Self::Unkept { why: why.to_string() }
    }
}
