//! A guard of a lease: renews it in the background, and releases it when it is dropped.
//!
//! A guard does not stop a process that was paused past the end of its lease: send
//! [`Lock::fence`] with every write. The end of the lease is measured on this process's monotonic
//! clock from before the request was sent, so the guard never counts on a lease longer than the
//! store does. Only a request that waited for the lock was granted later: its lease is measured
//! from the answer, until the first renewal, which is then sent at once.

use std::fmt;
use std::time::Duration;

use catraca_core::lock::LeaseId;
use catraca_core::lock::reply::ReleaseReply;
use catraca_core::time::Span;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::lock_request::LockRequest;
use super::service::{LeaseGrant, LeaseLoss, LeaseRenewal, LockService};

/// A lease is renewed after this part of its TTL.
const RENEWALS_PER_TTL: u32 = 3;
/// A renewal that failed is repeated after this part of the TTL.
const RETRIES_PER_TTL: u32 = 10;

/// A lease that is renewed until this value is dropped or released.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use catraca::locks::LocalLocks;
/// use catraca::{LockRequest, LockService, Locks, Secret, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = Locks::in_memory(Arc::new(SystemClock::new()), &Secret::from_bytes([7; 32]));
/// let locks = LocalLocks::new(Arc::new(locks), Default::default()); // or a `Client`
/// let request = LockRequest::new("invoice", "17").ttl(Duration::from_secs(5));
/// let lock = locks.lock(request).await?.expect("no other caller has it");
/// println!("write with fence {}", lock.fence());
/// assert_eq!(lock.loss(), None);
/// lock.release().await?;
/// # Ok(())
/// # }
/// ```
pub struct Lock<S: LockService> {
    service: S,
    grant: LeaseGrant,
    state: watch::Receiver<GuardState>,
    /// Ends the renewals. Dropped without a message, it also releases the lease.
    stop: Option<oneshot::Sender<()>>,
}

/// What the renewals know of the lease.
#[derive(Debug, Default)]
struct GuardState {
    loss: Option<LeaseLoss>,
    renewal_error: Option<String>,
}

impl<S: LockService> Lock<S> {
    /// Renews a lease that was asked for at `asked_at` and has just been granted.
    pub(super) fn keep(
        service: S,
        grant: LeaseGrant,
        request: &LockRequest,
        asked_at: Instant,
    ) -> Self {
        let ttl = duration(grant.ttl);
        let renew_at = asked_at + ttl / RENEWALS_PER_TTL;
        let may_have_waited = request.wait.is_some_and(|wait| !wait.is_zero());
        let now = Instant::now();
        let begun_at = if may_have_waited && renew_at <= now { now } else { asked_at };
        let (report, state) = watch::channel(GuardState::default());
        let (stop, stopped) = oneshot::channel();
        let renewals = LeaseRenewals {
            service: service.clone(),
            lease: grant.id,
            requested_ttl: request.lease.ttl,
            ttl,
            renew_at,
            expires_at: begun_at + ttl,
            stopped,
        };
        tokio::spawn(renewals.run(report));
        Self { service, grant, state, stop: Some(stop) }
    }

    /// The fencing token: higher than that of every earlier grant in the namespace. Send it with
    /// every write, and let the resource refuse lower ones.
    pub const fn fence(&self) -> i64 {
        self.grant.fence
    }

    /// The lease, as it was granted.
    pub const fn grant(&self) -> &LeaseGrant {
        &self.grant
    }

    /// How the lease was lost; `None` while it is held.
    pub fn loss(&self) -> Option<LeaseLoss> {
        self.state.borrow().loss
    }

    /// Why the last renewal failed; `None` if it succeeded. It is tried again until the lease
    /// expires, and a lease that expired after failed renewals keeps the last error.
    pub fn renewal_error(&self) -> Option<String> {
        self.state.borrow().renewal_error.clone()
    }

    /// Completes when the lease is lost: then stop the work that it protects.
    pub async fn until_lost(&self) -> LeaseLoss {
        let mut state = self.state.clone();
        // An error means that the renewals were stopped without a report: with their runtime.
        let reported = state.wait_for(|state| state.loss.is_some()).await;
        reported.ok().and_then(|state| state.loss).unwrap_or(LeaseLoss::Expired)
    }

    /// Releases the lease, and reports how. Dropping the guard releases it too, without a report.
    pub async fn release(mut self) -> Result<ReleaseReply, S::Error> {
        if let Some(stop) = self.stop.take() {
            // The receiver is gone if the lease was lost.
            let _ = stop.send(());
        }
        self.service.release(self.grant.id).await
    }
}

impl<S: LockService> fmt::Debug for Lock<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("fence", &self.grant.fence)
            .field("loss", &self.loss())
            .finish_non_exhaustive()
    }
}

/// The task that renews one lease.
struct LeaseRenewals<S> {
    service: S,
    lease: LeaseId,
    requested_ttl: Option<Duration>,
    ttl: Duration,
    renew_at: Instant,
    /// The end of the lease, by this process's clock.
    expires_at: Instant,
    stopped: oneshot::Receiver<()>,
}

impl<S: LockService> LeaseRenewals<S> {
    async fn run(mut self, report: watch::Sender<GuardState>) {
        let loss = loop {
            if self.stopped_before_renewal().await {
                return;
            }
            let asked_at = Instant::now();
            if asked_at >= self.expires_at {
                break LeaseLoss::Expired;
            }
            let renewal = self.service.renew(self.lease, self.requested_ttl);
            let renewal = tokio::select! {
                stopped = &mut self.stopped => {
                    return release_if_dropped(stopped, &self.service, self.lease).await;
                }
                renewal = timeout_at(self.expires_at, renewal) => renewal,
            };
            let error = match &renewal {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("no answer before the lease expired".to_owned()),
            };
            report.send_modify(|state| state.renewal_error = error);
            match renewal {
                Ok(Ok(LeaseRenewal::Extended { ttl })) => {
                    self.ttl = duration(ttl);
                    self.expires_at = asked_at + self.ttl;
                    self.renew_at = asked_at + self.ttl / RENEWALS_PER_TTL;
                }
                Ok(Ok(LeaseRenewal::AtMost)) => self.renew_at = self.expires_at,
                Ok(Ok(LeaseRenewal::Ended(loss))) => break loss,
                // The service may answer again before the lease expires.
                Ok(Err(_)) => self.renew_at = Instant::now() + self.ttl / RETRIES_PER_TTL,
                Err(_) => break LeaseLoss::Expired,
            }
        };
        report.send_modify(|state| state.loss = Some(loss));
    }

    /// Sleeps until the next renewal, at most until the lease expires. Returns whether the guard
    /// has stopped the renewals.
    async fn stopped_before_renewal(&mut self) -> bool {
        let wake_at = self.renew_at.min(self.expires_at);
        tokio::select! {
            stopped = &mut self.stopped => {
                release_if_dropped(stopped, &self.service, self.lease).await;
                true
            }
            () = sleep_until(wake_at) => false,
        }
    }
}

/// Releases a lease whose guard was dropped. An error is left to the TTL, which ends the lease.
async fn release_if_dropped<S: LockService>(
    stopped: Result<(), oneshot::error::RecvError>,
    service: &S,
    lease: LeaseId,
) {
    if stopped.is_err() {
        let _ = service.release(lease).await;
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(span.micros().max(0).unsigned_abs())
}
