//! Operations on locks and slots as one enum, and their replies as another: the interface of a lock
//! store.
//!
//! [`LockTable::apply`](super::LockTable::apply) defines what each operation does; every other
//! store is compared with it.

use super::counters::{AttemptCounts, AttemptCountsKey};
use super::id::LeaseKey;
use super::reply::{
    AcquireReply, Availability, ConfirmReply, Lease, MoveReply, ReleaseReply, RenewReply,
};
use super::requests::{Acquire, AvailabilityQuery, Hold, Move, Proof};
use super::terms::Durability;
use crate::time::{Span, Time};

/// One operation, applied atomically at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockOp {
    /// Acquire names, all or none.
    Acquire {
        /// The request.
        request: Acquire,
        /// Whether a conflict ends the attempt, so that it is counted. Not if the caller waits.
        counts_conflict: bool,
    },
    /// Hold a range of time in calendars, all or none. A conflict is counted.
    Hold(Hold),
    /// Count a conflict: an acquire that waited and gave up.
    CountConflict {
        /// The tenant.
        tenant: Option<Box<str>>,
        /// The kind.
        kind: Box<str>,
    },
    /// Extend a lease.
    Renew {
        /// The proof of the lease.
        proof: Proof,
        /// The new TTL, from now on.
        ttl: Span,
        /// When the renewal is answered, as in a lease request.
        durability: Durability,
        /// The grace of the lease's kind after the store may have lost leases. A store that can
        /// be replaced extends such a lease only while it is certain that it was not.
        grace: Span,
    },
    /// Release a lock.
    Release(Proof),
    /// Cancel a slot, held or confirmed.
    Cancel(Proof),
    /// Confirm a held slot.
    Confirm {
        /// The proof of the lease.
        proof: Proof,
        /// Whether an expired hold is confirmed too, if its range is still free.
        again: bool,
        /// How long an expired hold cannot be taken again after the store may have lost leases, as
        /// in a renewal.
        grace: Span,
    },
    /// Move a slot to another range or calendar.
    Relocate(Move),
    /// Read the busy and free ranges of a calendar.
    Availability(AvailabilityQuery),
    /// Read the lease of a proof, also one that has ended and is remembered.
    Show(Proof),
    /// List live leases by fence.
    List {
        /// Only fences above this one.
        after: i64,
        /// The most leases in the reply.
        most: usize,
    },
    /// End a lease by its fence, for an operator.
    Force {
        /// The fence.
        fence: i64,
        /// The only tenant whose leases may be ended; `None` for every tenant.
        tenant: Option<Box<str>>,
        /// How long its names stay taken, at most as long as the lease would have lasted.
        cool_down: Span,
    },
    /// End held leases of a tenant, a page at a time. Confirmed slots stay.
    Clear {
        /// The tenant.
        tenant: Option<Box<str>>,
        /// Only fences above this one.
        after: i64,
        /// Only fences up to this one; `None` for the last that was given out so far.
        upto: Option<i64>,
        /// The most leases to look at.
        most: usize,
    },
    /// Revert a grant of which no caller was notified.
    Undo(LeaseKey),
    /// Remove some expired leases.
    Sweep,
    /// Read the counters.
    Counters,
}

/// The reply to an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockReply {
    /// The instant of the operation, by the clock that leases are timed with.
    pub now: Time,
    /// The result.
    pub outcome: LockOutcome,
}

/// The result of an operation, one variant per kind of operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockOutcome {
    /// Of an acquire or a hold.
    Acquired(AcquireReply),
    /// Of an operation without a result.
    Done,
    /// Of a renewal.
    Renewed(RenewReply),
    /// Of a release or a cancellation.
    Ended(ReleaseReply),
    /// Of a confirmation.
    Confirmed(ConfirmReply),
    /// Of a move.
    Moved(MoveReply),
    /// Of an availability query. It may cover less than was requested; then it says where to
    /// continue.
    Availability(Availability),
    /// The lease of a proof.
    Shown(Option<Box<Lease>>),
    /// Of a list.
    Listed {
        /// The leases.
        leases: Vec<Lease>,
        /// The fence to continue after; `None` if that was all.
        next: Option<i64>,
    },
    /// Of a forced end: the lease as it was, but ended; `None` if there was none.
    Forced(Option<Box<Lease>>),
    /// Of a clear.
    Cleared {
        /// How many ended.
        ended: usize,
        /// The fence to continue after; `None` if that was all.
        next: Option<i64>,
        /// The last fence that was considered, for the next page.
        upto: i64,
    },
    /// Of a sweep.
    Swept {
        /// Whether there may be more to remove.
        more: bool,
    },
    /// The counters, by tenant and kind.
    Counters(Vec<(AttemptCountsKey, AttemptCounts)>),
}

impl LockOp {
    /// Whether the operation can take a name or range that another caller may believe to hold. Such
    /// operations are refused while leases may have been lost.
    pub const fn may_take(&self) -> bool {
        matches!(
            self,
            Self::Acquire { .. }
                | Self::Hold(_)
                | Self::Relocate(_)
                | Self::Confirm { again: true, .. }
        )
    }
}
