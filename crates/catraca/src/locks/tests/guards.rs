//! Guards of locks: renewal, loss and release. Time is virtual.

use std::sync::atomic::{AtomicU32, Ordering};

use catraca_core::lock::LeaseId;

use super::*;
use crate::locks::{
    AcquireResult, LeaseLoss, LeaseRenewal, LocalLocks, LockRequest, LockService, NotGranted,
    SlotConfirmation, SlotRequest,
};

fn service() -> LocalLocks {
    LocalLocks::new(locks(), LockTerms::default())
}

fn request() -> LockRequest {
    LockRequest::new("payment", "order-7").ttl(Duration::from_secs(3))
}

#[tokio::test(start_paused = true)]
async fn a_guard_renews_its_lease_until_it_is_released() {
    let service = service();
    let lock = service.lock(request().owner_label("worker 3")).await.unwrap().unwrap();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(lock.loss(), None);
    let Err(NotGranted::Taken(taken)) = service.acquire(&request()).await.unwrap() else {
        panic!("the lock is held");
    };
    assert_eq!((&*taken.taken, taken.owner_label.as_deref()), ("order-7", Some("worker 3")));
    assert!(taken.retry_after.unwrap() <= Span::from_secs(3));
    let fence = lock.fence();
    assert_eq!(lock.release().await, Ok(ReleaseReply::Released));
    let next = service.acquire(&request()).await.unwrap().unwrap();
    assert!(next.fence > fence);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_guard_releases_its_lease() {
    let service = service();
    drop(service.lock(request()).await.unwrap().unwrap());
    let waiting = service.lock(request().wait(Duration::from_secs(1)));
    assert!(waiting.await.unwrap().is_ok());
}

/// Regression: the lease was measured from the request, so that it seemed to have expired while the
/// request waited for it.
#[tokio::test(start_paused = true)]
async fn a_guard_that_waited_longer_than_its_ttl_has_its_lease() {
    let service = service();
    let first = service.lock(request()).await.unwrap().unwrap();
    let waiting = service.lock(request().wait(Duration::from_secs(20)));
    let (second, released) = tokio::join!(waiting, async {
        sleep(Duration::from_secs(10)).await;
        first.release().await
    });
    assert_eq!(released, Ok(ReleaseReply::Released));
    let second = second.unwrap().unwrap();
    sleep(Duration::from_secs(30)).await;
    assert_eq!(second.loss(), None);
    assert_eq!(second.release().await, Ok(ReleaseReply::Released));
}

#[tokio::test(start_paused = true)]
async fn a_guard_reports_that_its_lease_ended() {
    let service = service();
    let lock = service.lock(request()).await.unwrap().unwrap();
    assert_eq!(service.release(lock.grant().id).await, Ok(ReleaseReply::Released));
    assert_eq!(lock.until_lost().await, LeaseLoss::Expired);
    assert_eq!(lock.loss(), Some(LeaseLoss::Expired));
    assert_eq!(lock.release().await, Ok(ReleaseReply::Already));
}

#[tokio::test(start_paused = true)]
async fn a_guard_ends_with_the_longest_hold() {
    let service = service();
    let mut request = request();
    request.lease.max_hold = Some(Duration::from_secs(10));
    let begun = Instant::now();
    let lock = service.lock(request).await.unwrap().unwrap();
    assert_eq!(lock.until_lost().await, LeaseLoss::Expired);
    assert_eq!(begun.elapsed().as_secs(), 10);
}

/// Locks that stop answering renewals after the first ones.
#[derive(Clone)]
struct FailingLocks {
    inner: LocalLocks,
    renewals_left: Arc<AtomicU32>,
}

impl LockService for FailingLocks {
    type Error = LockError;

    async fn acquire(&self, request: &LockRequest) -> Result<AcquireResult, LockError> {
        self.inner.acquire(request).await
    }

    async fn renew(
        &self,
        lease: LeaseId,
        ttl: Option<Duration>,
    ) -> Result<LeaseRenewal, LockError> {
        let one_less = |left: u32| left.checked_sub(1);
        let left = &self.renewals_left;
        if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_err() {
            return Err(LockError::Stopping);
        }
        self.inner.renew(lease, ttl).await
    }

    async fn release(&self, lease: LeaseId) -> Result<ReleaseReply, LockError> {
        self.inner.release(lease).await
    }

    async fn hold(&self, request: &SlotRequest) -> Result<AcquireResult, LockError> {
        self.inner.hold(request).await
    }

    async fn confirm(
        &self,
        lease: LeaseId,
        reacquire_if_free: bool,
    ) -> Result<SlotConfirmation, LockError> {
        self.inner.confirm(lease, reacquire_if_free).await
    }

    async fn cancel(&self, lease: LeaseId) -> Result<ReleaseReply, LockError> {
        self.inner.cancel(lease).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_cannot_renew_is_lost_when_its_lease_expires() {
    let service = FailingLocks { inner: service(), renewals_left: Arc::new(AtomicU32::new(2)) };
    let begun = Instant::now();
    let lock = service.lock(request()).await.unwrap().unwrap();
    assert_eq!(lock.until_lost().await, LeaseLoss::Expired);
    // Renewed after 1 s and 2 s, for 3 s each.
    assert_eq!(begun.elapsed().as_secs(), 5);
    assert_eq!(lock.renewal_error(), Some(LockError::Stopping.to_string()));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_for_a_while_keeps_the_lease() {
    let renewals_left = Arc::new(AtomicU32::new(0));
    let service = FailingLocks { inner: service(), renewals_left: Arc::clone(&renewals_left) };
    let lock = service.lock(request()).await.unwrap().unwrap();
    assert_eq!(lock.renewal_error(), None);
    sleep(Duration::from_millis(2_500)).await;
    assert_eq!(lock.renewal_error(), Some(LockError::Stopping.to_string()));
    renewals_left.store(u32::MAX, Ordering::SeqCst);
    sleep(Duration::from_secs(30)).await;
    assert_eq!((lock.loss(), lock.renewal_error()), (None, None));
}

#[tokio::test(start_paused = true)]
async fn slots_are_held_confirmed_and_cancelled() {
    let service = service();
    let at = |secs: i64| Time::from_millis(2_000_000_000_000 + secs * 1_000);
    let held = service.hold(&SlotRequest::new("ana", at(0), at(1_800))).await.unwrap().unwrap();
    let overlapping = SlotRequest::new("ana", at(900), at(2_700));
    assert!(matches!(service.hold(&overlapping).await, Ok(Err(NotGranted::Taken(_)))));
    let confirmed = service.confirm(held.id, false).await.unwrap();
    assert!(matches!(confirmed, SlotConfirmation::Confirmed { fence, .. } if fence == held.fence));
    assert_eq!(service.cancel(held.id).await, Ok(ReleaseReply::Released));
    let brief = overlapping.ttl(Duration::from_secs(1));
    let held = service.hold(&brief).await.unwrap().unwrap();
    sleep(Duration::from_secs(2)).await;
    let late = service.confirm(held.id, false).await.unwrap();
    assert_eq!(late, SlotConfirmation::Ended { still_free: true });
}
