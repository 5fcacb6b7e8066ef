//! Where this server keeps locks and slots, behind one type.
//!
//! In this process, or in a store that nodes share. Must not hold a rule: every call is handed on.

use catraca::core::lock::op::{Acquire, Hold, Look, Move, Proof};
use catraca::core::lock::reply::{Availability, Confirmed, Ended, Moved, Renewed, View};
use catraca::core::lock::{Durability, LeaseId};
use catraca::locks::{Answer, At, Filter, LockPage, LockStats, SharedLocks};
use catraca::{LockError, Locks, Span};

/// What answers come to.
type Told<T> = Result<T, LockError>;

/// Leases and slots, wherever they are.
#[derive(Debug)]
pub enum Keeper {
    /// In this process.
    Here(Locks),
    /// In a store that nodes share.
    Shared(SharedLocks),
}

impl Keeper {
    /// The proof of a new lease.
    pub fn lease_id(
        &self,
        namespace: &str,
        tenant: Option<&str>,
        request: Option<&str>,
    ) -> Told<LeaseId> {
        match self {
            Self::Here(locks) => locks.lease_id(namespace, tenant, request),
            Self::Shared(locks) => locks.lease_id(namespace, tenant, request),
        }
    }

    /// How safely a grant is kept: as the catalog says, or as the store does.
    pub fn durability(&self, wanted: Durability) -> Durability {
        match self {
            Self::Here(_) => wanted,
            Self::Shared(locks) => locks.durability(),
        }
    }

    /// Takes some names, all or none, and waits for them as long as is asked.
    pub async fn acquire(
        &self,
        namespace: &str,
        asked: &Acquire,
        wait: Span,
        durability: Durability,
    ) -> Told<At<Answer>> {
        match self {
            Self::Here(locks) => {
                let answer = locks.acquire(namespace, asked, wait, durability).await?;
                Ok((answer, locks.now()))
            }
            Self::Shared(locks) => locks.acquire(namespace, asked, wait).await,
        }
    }

    /// Takes a range of time in some calendars, all or none.
    pub async fn hold(
        &self,
        namespace: &str,
        asked: &Hold,
        durability: Durability,
    ) -> Told<At<Answer>> {
        match self {
            Self::Here(locks) => Ok((locks.hold(namespace, asked, durability).await?, locks.now())),
            Self::Shared(locks) => locks.hold(namespace, asked).await,
        }
    }

    /// Makes a lease last longer.
    pub async fn renew(
        &self,
        namespace: &str,
        proof: &Proof,
        ttl: Span,
        durability: Durability,
    ) -> Told<At<Renewed>> {
        match self {
            Self::Here(locks) => {
                Ok((locks.renew(namespace, proof, ttl, durability).await?, locks.now()))
            }
            Self::Shared(locks) => locks.renew(namespace, proof, ttl).await,
        }
    }

    /// Of what kind the lease of a proof is, if its holder may see it.
    pub async fn kind_of(&self, namespace: &str, proof: &Proof) -> Told<Option<Box<str>>> {
        match self {
            Self::Here(locks) => Ok(locks.kind_of(namespace, proof)),
            Self::Shared(locks) => locks.kind_of(namespace, proof).await,
        }
    }

    /// Gives names back.
    pub async fn release(&self, namespace: &str, proof: &Proof) -> Told<Ended> {
        match self {
            Self::Here(locks) => locks.release(namespace, proof),
            Self::Shared(locks) => locks.release(namespace, proof).await,
        }
    }

    /// Gives a slot back, confirmed or not.
    pub async fn cancel(&self, namespace: &str, proof: &Proof) -> Told<Ended> {
        match self {
            Self::Here(locks) => locks.cancel(namespace, proof).await,
            Self::Shared(locks) => locks.cancel(namespace, proof).await,
        }
    }

    /// Takes what is held for good, and says whether that is on disk.
    pub async fn confirm(
        &self,
        namespace: &str,
        proof: &Proof,
        (again, grace): (bool, Span),
    ) -> Told<(Confirmed, bool)> {
        match self {
            Self::Here(locks) => locks.confirm(namespace, proof, again).await,
            Self::Shared(locks) => Ok(locks.confirm(namespace, proof, (again, grace)).await?.0),
        }
    }

    /// Puts a slot somewhere else, or leaves it where it is.
    pub async fn relocate(
        &self,
        namespace: &str,
        asked: &Move,
        durability: Durability,
    ) -> Told<At<Moved>> {
        match self {
            Self::Here(locks) => {
                Ok((locks.relocate(namespace, asked, durability).await?, locks.now()))
            }
            Self::Shared(locks) => locks.relocate(namespace, asked).await,
        }
    }

    /// What is taken and what is free.
    pub async fn look(&self, namespace: &str, asked: &Look) -> Told<Availability> {
        match self {
            Self::Here(locks) => locks.look(namespace, asked),
            Self::Shared(locks) => Ok(locks.look(namespace, asked).await?.0),
        }
    }

    /// Leases in force with numbers above one, oldest first.
    pub async fn list(
        &self,
        namespace: &str,
        filter: &Filter<'_>,
        page: (i64, usize),
    ) -> Told<LockPage> {
        match self {
            Self::Here(locks) => locks.list(namespace, filter, page),
            Self::Shared(locks) => locks.list(namespace, filter, page).await,
        }
    }

    /// What became of the attempts of one tenant, or of all.
    pub async fn stats_of(&self, namespace: &str, tenant: Option<&str>) -> Told<LockStats> {
        match self {
            Self::Here(locks) => locks.stats_of(namespace, tenant),
            Self::Shared(locks) => locks.stats_of(namespace, tenant).await,
        }
    }

    /// Ends a lease by its number.
    pub async fn force(
        &self,
        namespace: &str,
        fence: i64,
        tenant: Option<&str>,
        cool_down: Span,
    ) -> Told<Option<View>> {
        match self {
            Self::Here(locks) => locks.force(namespace, fence, tenant, cool_down),
            Self::Shared(locks) => locks.force(namespace, fence, tenant, cool_down).await,
        }
    }

    /// Ends all that a tenant holds at this moment, but not what is confirmed; says how many.
    pub async fn clear(&self, namespace: &str, tenant: Option<&str>) -> Told<usize> {
        match self {
            Self::Here(locks) => locks.clear(namespace, tenant).await,
            Self::Shared(locks) => locks.clear(namespace, tenant).await,
        }
    }

    /// For how long nothing is granted because leases of the process before may be in force.
    pub fn starting(&self) -> Option<Span> {
        match self {
            Self::Here(locks) => locks.starting(),
            Self::Shared(_) => None,
        }
    }

    /// Nobody waits any more: whoever does is told at once that the process ends.
    pub fn dismiss(&self) {
        match self {
            Self::Here(locks) => locks.dismiss(),
            Self::Shared(locks) => locks.dismiss(),
        }
    }

    /// Puts away what is over.
    pub async fn tend(&self) {
        match self {
            Self::Here(locks) => locks.tend(),
            Self::Shared(locks) => locks.tend().await,
        }
    }
}
