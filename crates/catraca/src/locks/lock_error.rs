//! Errors of lock calls. A conflict is an answer, not an error.

use std::time::Duration;

use catraca_core::lock::LockRefusal;
use catraca_core::time::Span;
use thiserror::Error;

use super::NAMESPACES_MAX;
use super::wait_queues::WAITERS_MAX;
use crate::store::StoreError;

/// Why a lock call has no answer.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use catraca::locks::LocalLocks;
/// use catraca::{LockError, LockRequest, LockService, Locks, Secret, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = Locks::in_memory(Arc::new(SystemClock::new()), &Secret::from_bytes([7; 32]));
/// let locks = LocalLocks::new(Arc::new(locks), Default::default()); // or a `Client`
/// let a_year = LockRequest::new("invoice", "17").ttl(Duration::from_secs(365 * 86_400));
/// let error = locks.lock(a_year).await.unwrap_err();
/// assert!(matches!(&error, LockError::Refused(_)), "{error}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LockError {
    /// The call is invalid.
    #[error(transparent)]
    Refused(#[from] LockRefusal),
    /// Leases of the previous process may still be valid, so nothing is granted for a while.
    #[error(
        "leases of the previous process may still be valid: no locks are granted for {} s",
        wait.ceil_secs()
    )]
    Starting {
        /// How much longer.
        #[doc(hidden)]
        wait: Span,
    },
    /// The process is stopping.
    #[error("this process is stopping: try again, on another node or after its restart")]
    Stopping,
    /// The journal could not be written.
    #[error("the change could not be written to disk, so its outcome is unknown: {why}")]
    WriteFailed {
        /// Why.
        why: String,
    },
    /// The store did not answer in time.
    #[error(
        "the lock store is unavailable, so the outcome of the call is unknown: {why}; try again, \
         with the same `request_id` if there is one"
    )]
    StoreUnavailable {
        /// Why.
        why: String,
    },
    /// Too many callers wait for the name.
    #[error("{WAITERS_MAX} callers already wait for this name: try again later")]
    TooManyWaiters,
    /// Too many namespaces.
    #[error("too many namespaces with locks: at most {NAMESPACES_MAX}")]
    TooManyNamespaces,
}

impl LockError {
    /// How much longer nothing is granted, because leases of the previous process may still be
    /// valid; absent for other errors.
    pub fn startup_wait(&self) -> Option<Duration> {
        match self {
            Self::Starting { wait } => Some((*wait).into()),
            _ => None,
        }
    }

    pub(super) fn write_failed(why: &dyn std::fmt::Display) -> Self {
        Self::WriteFailed { why: why.to_string() }
    }

    /// The error for a reply that does not match its operation.
    pub(super) fn unexpected_reply() -> Self {
        StoreError::mismatched_reply().into()
    }
}

impl From<StoreError> for LockError {
    fn from(error: StoreError) -> Self {
        let why = match error {
            StoreError::Unavailable { reason } | StoreError::Moving { reason } => reason,
            other => other.to_string(),
        };
        Self::StoreUnavailable { why }
    }
}
