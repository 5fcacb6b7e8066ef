//! Locks of this process, or of a store that it opened, as a [`LockService`].

use std::sync::Arc;
use std::time::Duration;

use catraca_core::lock::reply::{AcquireReply, ConfirmReply, LeaseState, ReleaseReply, RenewReply};
use catraca_core::lock::requests::Proof;
use catraca_core::lock::{LeaseId, LeaseKey, LockTerms};
use catraca_core::request::DEFAULT_NAMESPACE;

use super::Locks;
use super::acquire::LockAttempt;
use super::lock_error::LockError;
use super::lock_request::{LockRequest, SlotRequest, whole_millis};
use super::service::{
    AcquireResult, LeaseGrant, LeaseLoss, LeaseRenewal, LockService, NotGranted, SlotConfirmation,
    TakenLease,
};

/// The locks of one namespace, with the terms of each kind.
#[derive(Clone, Debug)]
pub struct LocalLocks {
    locks: Arc<Locks>,
    terms: Arc<LockTerms>,
    namespace: Arc<str>,
}

impl LocalLocks {
    /// The default namespace.
    pub fn new(locks: Arc<Locks>, terms: LockTerms) -> Self {
        Self { locks, terms: Arc::new(terms), namespace: DEFAULT_NAMESPACE.into() }
    }

    /// Uses another namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The lease id of a request; the same one for a request that is repeated.
    fn lease_id(
        &self,
        tenant: Option<&str>,
        request_id: Option<&str>,
    ) -> Result<LeaseId, LockError> {
        self.locks.lease_id(&self.namespace, tenant, request_id)
    }
}

impl LockService for LocalLocks {
    type Error = LockError;

    async fn acquire(&self, request: &LockRequest) -> Result<AcquireResult, LockError> {
        let wait = self.terms.wait(request.wait.map(whole_millis))?;
        let lease = &request.lease;
        let id = self.lease_id(lease.tenant.as_deref(), lease.request_id.as_deref())?;
        let operation = request.clone().into_operation(&self.terms, id.key())?;
        acquire_result(id, self.locks.acquire(&self.namespace, &operation, wait).await?)
    }

    async fn renew(
        &self,
        lease: LeaseId,
        ttl: Option<Duration>,
    ) -> Result<LeaseRenewal, LockError> {
        let proof = proof(lease.key());
        let renewed = self.locks.renew(&self.namespace, &proof, ttl, &self.terms).await?;
        Ok(match renewed.reply {
            RenewReply::Extended(lease) => {
                LeaseRenewal::Extended { ttl: lease.expires_at.since(renewed.now) }
            }
            RenewReply::AtMost(_) => LeaseRenewal::AtMost,
            RenewReply::Over(LeaseState::Forced) => LeaseRenewal::Ended(LeaseLoss::Forced),
            RenewReply::Over(_) => LeaseRenewal::Ended(LeaseLoss::Expired),
            RenewReply::NotHolder => LeaseRenewal::Ended(LeaseLoss::NotHolder),
        })
    }

    async fn release(&self, lease: LeaseId) -> Result<ReleaseReply, LockError> {
        self.locks.release(&self.namespace, &proof(lease.key())).await
    }

    async fn hold(&self, request: &SlotRequest) -> Result<AcquireResult, LockError> {
        let lease = &request.lease;
        let id = self.lease_id(lease.tenant.as_deref(), lease.request_id.as_deref())?;
        let operation = request.clone().into_operation(&self.terms, id.key())?;
        acquire_result(id, self.locks.hold(&self.namespace, &operation).await?)
    }

    async fn confirm(
        &self,
        lease: LeaseId,
        reacquire_if_free: bool,
    ) -> Result<SlotConfirmation, LockError> {
        let proof = proof(lease.key());
        let confirming =
            self.locks.confirm(&self.namespace, &proof, reacquire_if_free, &self.terms);
        let confirmation = confirming.await?;
        let durable = confirmation.durable;
        Ok(match confirmation.reply {
            ConfirmReply::Done(lease) => {
                SlotConfirmation::Confirmed { fence: lease.fence, durable }
            }
            ConfirmReply::Over { still_free, .. } => SlotConfirmation::Ended { still_free },
            ConfirmReply::NotHolder => SlotConfirmation::NotHolder,
        })
    }

    async fn cancel(&self, lease: LeaseId) -> Result<ReleaseReply, LockError> {
        self.locks.cancel(&self.namespace, &proof(lease.key())).await
    }
}

fn proof(key: LeaseKey) -> Proof {
    Proof { key, tenant: None }
}

fn acquire_result(id: LeaseId, attempt: LockAttempt) -> Result<AcquireResult, LockError> {
    let now = attempt.now;
    match attempt.acquired {
        AcquireReply::Granted(lease) | AcquireReply::Again(lease) => Ok(Ok(LeaseGrant {
            id,
            fence: lease.fence,
            version: lease.version,
            ttl: lease.expires_at.since(now),
            expires_at: lease.expires_at,
            renewable_until: lease.hold_until,
        })),
        AcquireReply::Conflict(conflict) => {
            let free_at = conflict.free_at;
            Ok(Err(NotGranted::Taken(TakenLease {
                taken: conflict.taken.into(),
                owner_label: conflict.holder.label.as_deref().map(str::to_owned),
                version: conflict.holder.version,
                retry_after: (!free_at.is_forever()).then(|| free_at.since(now)),
                waiters: attempt.waiters,
            })))
        }
        AcquireReply::Stale { .. } => Ok(Err(NotGranted::StaleVersion)),
        AcquireReply::Refused(refusal) => Err(refusal.into()),
    }
}
