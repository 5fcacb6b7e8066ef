//! Locks and slots in this process or in a shared store, behind one type.

use catraca::core::lock::reply::{
    Availability, ConfirmReply, Lease, MoveReply, ReleaseReply, RenewReply,
};
use catraca::core::lock::requests::{Acquire, AvailabilityQuery, Hold, Move, Proof};
use catraca::core::lock::{Durability, LeaseId};
use catraca::locks::{LeaseFilter, LockAttempt, LockPage, LockStats, SharedLocks, StoreTimed};
use catraca::{LockError, Locks, Span};

/// The result of a call about locks.
type LockCallResult<T> = Result<T, LockError>;

/// Locks and slots of the server.
#[derive(Debug)]
pub enum LockService {
    /// In this process.
    Local(Locks),
    /// In a shared store.
    Shared(SharedLocks),
}

impl LockService {
    /// Creates the id of a new lease, which proves its ownership.
    pub fn lease_id(
        &self,
        namespace: &str,
        tenant: Option<&str>,
        request: Option<&str>,
    ) -> LockCallResult<LeaseId> {
        match self {
            Self::Local(locks) => locks.lease_id(namespace, tenant, request),
            Self::Shared(locks) => locks.lease_id(namespace, tenant, request),
        }
    }

    /// The durability of a grant: in this process as wanted, in a shared store as the store offers.
    pub fn durability(&self, wanted: Durability) -> Durability {
        match self {
            Self::Local(_) => wanted,
            Self::Shared(locks) => locks.durability(),
        }
    }

    /// Acquires names, all or none, and waits for them up to `wait`.
    pub async fn acquire(
        &self,
        namespace: &str,
        request: &Acquire,
        wait: Span,
        durability: Durability,
    ) -> LockCallResult<StoreTimed<LockAttempt>> {
        match self {
            Self::Local(locks) => {
                let answer = locks.acquire(namespace, request, wait, durability).await?;
                Ok((answer, locks.now()))
            }
            Self::Shared(locks) => locks.acquire(namespace, request, wait).await,
        }
    }

    /// Holds a time range in some calendars, all or none.
    pub async fn hold(
        &self,
        namespace: &str,
        request: &Hold,
        durability: Durability,
    ) -> LockCallResult<StoreTimed<LockAttempt>> {
        match self {
            Self::Local(locks) => {
                Ok((locks.hold(namespace, request, durability).await?, locks.now()))
            }
            Self::Shared(locks) => locks.hold(namespace, request).await,
        }
    }

    /// Extends a lease.
    pub async fn renew(
        &self,
        namespace: &str,
        proof: &Proof,
        ttl: Span,
        durability: Durability,
    ) -> LockCallResult<StoreTimed<RenewReply>> {
        match self {
            Self::Local(locks) => {
                Ok((locks.renew(namespace, proof, ttl, durability).await?, locks.now()))
            }
            Self::Shared(locks) => locks.renew(namespace, proof, ttl).await,
        }
    }

    /// The kind of the lease that this proof is for, if it exists.
    pub async fn kind_of(
        &self,
        namespace: &str,
        proof: &Proof,
    ) -> LockCallResult<Option<Box<str>>> {
        match self {
            Self::Local(locks) => Ok(locks.kind_of(namespace, proof)),
            Self::Shared(locks) => locks.kind_of(namespace, proof).await,
        }
    }

    /// Releases a lease.
    pub async fn release(&self, namespace: &str, proof: &Proof) -> LockCallResult<ReleaseReply> {
        match self {
            Self::Local(locks) => locks.release(namespace, proof),
            Self::Shared(locks) => locks.release(namespace, proof).await,
        }
    }

    /// Cancels a slot, confirmed or not.
    pub async fn cancel(&self, namespace: &str, proof: &Proof) -> LockCallResult<ReleaseReply> {
        match self {
            Self::Local(locks) => locks.cancel(namespace, proof).await,
            Self::Shared(locks) => locks.cancel(namespace, proof).await,
        }
    }

    /// Confirms a held slot; with `reacquire` also one whose hold has expired, if it is still free.
    /// Returns also whether that is durable.
    pub async fn confirm(
        &self,
        namespace: &str,
        proof: &Proof,
        reacquire: bool,
        grace: Span,
    ) -> LockCallResult<(ConfirmReply, bool)> {
        match self {
            Self::Local(locks) => locks.confirm(namespace, proof, reacquire).await,
            Self::Shared(locks) => Ok(locks.confirm(namespace, proof, (reacquire, grace)).await?.0),
        }
    }

    /// Moves a slot; if the new place is taken, it stays where it is.
    pub async fn relocate(
        &self,
        namespace: &str,
        request: &Move,
        durability: Durability,
    ) -> LockCallResult<StoreTimed<MoveReply>> {
        match self {
            Self::Local(locks) => {
                Ok((locks.relocate(namespace, request, durability).await?, locks.now()))
            }
            Self::Shared(locks) => locks.relocate(namespace, request).await,
        }
    }

    /// The availability of a calendar or of names.
    pub async fn look(
        &self,
        namespace: &str,
        request: &AvailabilityQuery,
    ) -> LockCallResult<Availability> {
        match self {
            Self::Local(locks) => locks.look(namespace, request),
            Self::Shared(locks) => Ok(locks.look(namespace, request).await?.0),
        }
    }

    /// Active leases with fences above a number, oldest first.
    pub async fn list(
        &self,
        namespace: &str,
        filter: &LeaseFilter<'_>,
        page: (i64, usize),
    ) -> LockCallResult<LockPage> {
        match self {
            Self::Local(locks) => locks.list(namespace, filter, page),
            Self::Shared(locks) => locks.list(namespace, filter, page).await,
        }
    }

    /// Counts of attempts and ends, for one tenant or for all.
    pub async fn stats_of(
        &self,
        namespace: &str,
        tenant: Option<&str>,
    ) -> LockCallResult<LockStats> {
        match self {
            Self::Local(locks) => locks.stats_of(namespace, tenant),
            Self::Shared(locks) => locks.stats_of(namespace, tenant).await,
        }
    }

    /// Ends a lease by its fence; its names stay taken for `cool_down`.
    pub async fn force(
        &self,
        namespace: &str,
        fence: i64,
        tenant: Option<&str>,
        cool_down: Span,
    ) -> LockCallResult<Option<Lease>> {
        match self {
            Self::Local(locks) => locks.force(namespace, fence, tenant, cool_down),
            Self::Shared(locks) => locks.force(namespace, fence, tenant, cool_down).await,
        }
    }

    /// Ends all unconfirmed leases of a tenant. Returns how many.
    pub async fn clear(&self, namespace: &str, tenant: Option<&str>) -> LockCallResult<usize> {
        match self {
            Self::Local(locks) => locks.clear(namespace, tenant).await,
            Self::Shared(locks) => locks.clear(namespace, tenant).await,
        }
    }

    /// How long nothing is granted after a start, because leases of the previous process may still
    /// be valid.
    pub fn startup_wait(&self) -> Option<Span> {
        match self {
            Self::Local(locks) => locks.startup_wait(),
            Self::Shared(_) => None,
        }
    }

    /// Refuses all waiting callers, because the process ends.
    pub fn refuse_waiters(&self) {
        match self {
            Self::Local(locks) => locks.refuse_waiters(),
            Self::Shared(locks) => locks.refuse_waiters(),
        }
    }

    /// Expires leases and serves those that wait for them.
    pub async fn expire(&self) {
        match self {
            Self::Local(locks) => locks.maintain(),
            Self::Shared(locks) => locks.maintain().await,
        }
    }
}
