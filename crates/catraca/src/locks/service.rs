//! The port of programs that use locks: the same calls on locks of this process and on a server.

use std::time::{Duration, SystemTime};

use catraca_core::lock::LeaseId;
use catraca_core::lock::reply::ReleaseReply;
use catraca_core::time::{Span, Time};
use tokio::time::Instant;

use super::guard::Lock;
use super::lock_request::{LockRequest, SlotRequest};

/// Locks and slots, in this process ([`super::LocalLocks`]) or on a server (`Client`).
///
/// A program is written against this trait once. Its locks then become those of all processes by
/// another value: every call has the same answers.
///
/// ```
/// use std::time::Duration;
///
/// use catraca::locks::{LockRequest, LockService};
///
/// /// Runs on one process at a time.
/// async fn settle_accounts<S: LockService>(locks: &S) -> Result<bool, S::Error> {
///     let request = LockRequest::new("job", "accounts").ttl(Duration::from_secs(5));
///     let Ok(lock) = locks.lock(request).await? else { return Ok(false) };
///     // Work here, and stop when `lock.until_lost()` completes.
///     lock.release().await?;
///     Ok(true)
/// }
/// # use std::sync::Arc;
/// # use catraca::locks::{LocalLocks, Locks};
/// # use catraca::{Secret, SystemClock};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = Locks::in_memory(Arc::new(SystemClock::new()), &Secret::from_bytes([7; 32]));
/// # assert!(settle_accounts(&LocalLocks::new(Arc::new(locks), Default::default())).await?);
/// # Ok(())
/// # }
/// ```
pub trait LockService: Clone + Send + Sync + 'static {
    /// Why a call has no answer. A conflict is an answer.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Acquires names, all or none. The lease ends with its TTL unless it is renewed.
    fn acquire(
        &self,
        request: &LockRequest,
    ) -> impl Future<Output = Result<AcquireResult, Self::Error>> + Send;

    /// Extends a lease by this TTL, or by the default of its kind.
    fn renew(
        &self,
        lease: LeaseId,
        ttl: Option<Duration>,
    ) -> impl Future<Output = Result<LeaseRenewal, Self::Error>> + Send;

    /// Releases a lease.
    fn release(
        &self,
        lease: LeaseId,
    ) -> impl Future<Output = Result<ReleaseReply, Self::Error>> + Send;

    /// Holds a range of time in calendars, all or none.
    fn hold(
        &self,
        request: &SlotRequest,
    ) -> impl Future<Output = Result<AcquireResult, Self::Error>> + Send;

    /// Confirms a held slot; with `reacquire_if_free`, also one whose hold has expired, if it is
    /// still free.
    fn confirm(
        &self,
        lease: LeaseId,
        reacquire_if_free: bool,
    ) -> impl Future<Output = Result<SlotConfirmation, Self::Error>> + Send;

    /// Cancels a slot, held or confirmed.
    fn cancel(
        &self,
        lease: LeaseId,
    ) -> impl Future<Output = Result<ReleaseReply, Self::Error>> + Send;

    /// Acquires names, and returns a guard that renews the lease until it is dropped or released.
    /// It must be called on an async runtime, where the guard renews.
    fn lock(
        &self,
        request: LockRequest,
    ) -> impl Future<Output = Result<Result<Lock<Self>, NotGranted>, Self::Error>> + Send {
        async move {
            // Measured from before the request: the lease cannot have begun earlier.
            let asked_at = Instant::now();
            let acquired = self.acquire(&request).await?;
            Ok(acquired.map(|grant| Lock::keep(self.clone(), grant, &request, asked_at)))
        }
    }
}

/// A lease, or why there is none.
pub type AcquireResult = Result<LeaseGrant, NotGranted>;

/// A granted lease, as its holder sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseGrant {
    /// The proof of holding.
    pub id: LeaseId,
    /// The fencing token: send it with every write.
    pub fence: i64,
    /// The version that the request gave, or the fence.
    pub version: i64,
    /// How long the lease lasted when it was answered.
    #[doc(hidden)]
    pub ttl: Span,
    /// The end of the lease unless it is renewed.
    #[doc(hidden)]
    pub expires_at: Time,
    /// The instant beyond which it cannot be renewed.
    #[doc(hidden)]
    pub renewable_until: Time,
}

impl LeaseGrant {
    /// How long the lease lasted when it was answered.
    pub fn ttl(&self) -> Duration {
        self.ttl.into()
    }

    /// The end of the lease unless it is renewed.
    pub fn expires_at(&self) -> SystemTime {
        self.expires_at.into()
    }

    /// The instant beyond which it cannot be renewed.
    pub fn renewable_until(&self) -> SystemTime {
        self.renewable_until.into()
    }
}

/// Why nothing was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotGranted {
    /// Another lease holds a name or a part of the range.
    Taken(TakenLease),
    /// The version is not higher than the last one that was granted.
    StaleVersion,
}

/// The lease that holds a requested name or range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenLease {
    /// The first requested name or calendar that is taken.
    pub taken: String,
    /// The label of the holder.
    pub owner_label: Option<String>,
    /// The version of the holder.
    pub version: i64,
    /// The time until it is free unless it is renewed; `None` for a confirmed slot.
    #[doc(hidden)]
    pub retry_after: Option<Span>,
    /// Callers that wait for the name.
    pub waiters: usize,
}

impl TakenLease {
    /// How long until it is free unless it is renewed; `None` for a confirmed slot.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.map(Duration::from)
    }
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseRenewal {
    /// The lease lasts this long from the answer.
    Extended {
        /// How long.
        #[doc(hidden)]
        ttl: Span,
    },
    /// The lease cannot be extended further, and ends when it expires.
    AtMost,
    /// The lease has ended.
    Ended(LeaseLoss),
}

impl LeaseRenewal {
    /// How long the lease lasts from the answer; absent unless it was extended.
    pub fn ttl(&self) -> Option<Duration> {
        match self {
            Self::Extended { ttl } => Some((*ttl).into()),
            Self::AtMost | Self::Ended(_) => None,
        }
    }
}

/// How a holder lost its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseLoss {
    /// It expired, because it was not renewed in time or could not be renewed further; or it was
    /// released with its lease id.
    Expired,
    /// An operator ended it.
    Forced,
    /// The store does not know it any more.
    NotHolder,
}

/// The answer to the confirmation of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotConfirmation {
    /// The slot is confirmed.
    Confirmed {
        /// The fence, which is new if the slot was taken again.
        fence: i64,
        /// Whether the confirmation survives a crash.
        durable: bool,
    },
    /// The hold has ended.
    Ended {
        /// Whether its range is still free.
        still_free: bool,
    },
    /// There is no such lease, or the caller may not access it.
    NotHolder,
}
