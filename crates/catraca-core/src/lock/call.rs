//! Every operation on locks and slots as one value, and every answer as one: what a store is asked.
//!
//! [`Book::apply`](super::Book::apply) is how they are meant; any other store is compared with it.
//! Must not hold a proof, nor anything that only one kind of store could do.

use super::id::LeaseKey;
use super::op::{Acquire, Hold, Look, Move, Proof};
use super::reply::{Acquired, Availability, Confirmed, Ended, Moved, Renewed, View};
use super::tally::{Counts, Row};
use crate::time::{Span, Time};

/// One operation. All of it happens at one instant, or none of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockOp {
    /// Take some names, all or none.
    Acquire {
        /// What for.
        asked: Acquire,
        /// Whether meeting somebody ends the attempt, so that it counts as a conflict.
        counts: bool,
    },
    /// Take a range of time in some calendars, all or none. Meeting somebody counts.
    Hold(Hold),
    /// An attempt to acquire that met somebody and is over: it counts as a conflict.
    Miss {
        /// Whose.
        tenant: Option<Box<str>>,
        /// Of what kind.
        kind: Box<str>,
    },
    /// Make a lease last longer.
    Renew {
        /// Which one.
        proof: Proof,
        /// How long from now on.
        ttl: Span,
    },
    /// Give names back.
    Release(Proof),
    /// Give a slot back, confirmed or not.
    Cancel(Proof),
    /// Take what is held for good.
    Confirm {
        /// Which one.
        proof: Proof,
        /// Whether a hold that is over is taken anew, if nobody else has any of it.
        again: bool,
        /// How long nothing is taken anew after the store may have lost leases.
        grace: Span,
    },
    /// Put a slot somewhere else, or leave it where it is.
    Relocate(Move),
    /// What is taken and what is free in a calendar.
    Look(Look),
    /// The lease of a proof, also one that has ended and is remembered.
    Show(Proof),
    /// Leases in force with numbers above one, lowest first.
    List {
        /// The number.
        after: i64,
        /// At most so many.
        most: usize,
    },
    /// End a lease by its number.
    Force {
        /// The number.
        fence: i64,
        /// The only tenant whose leases may be ended; none is every tenant's.
        tenant: Option<Box<str>>,
        /// How long its names stay taken, at most as long as it would have lasted.
        cool_down: Span,
    },
    /// End leases of a tenant, some at a time, but nothing that is confirmed.
    Clear {
        /// Whose.
        tenant: Option<Box<str>>,
        /// With numbers above this one.
        after: i64,
        /// And up to this one; none is the last that was given out so far.
        upto: Option<i64>,
        /// Look at so many at most.
        most: usize,
    },
    /// Take a grant back as if it had never been: nobody was told of it.
    Undo(LeaseKey),
    /// Put away some of what is over.
    Sweep,
    /// What became of every attempt.
    Tally,
}

/// What an operation came to, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockReply {
    /// The instant of the operation, by the clock that leases are timed with.
    pub now: Time,
    /// What it came to.
    pub told: LockTold,
}

/// What an operation came to: each has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockTold {
    /// To an acquire or a hold.
    Acquired(Acquired),
    /// To a miss or an undo.
    Done,
    /// To a renewal.
    Renewed(Renewed),
    /// To a release or a cancellation.
    Ended(Ended),
    /// To a confirmation.
    Confirmed(Confirmed),
    /// To a move.
    Moved(Moved),
    /// To a look at a calendar. It may hold less than was asked for, and say where to go on.
    Seen(Availability),
    /// To a proof that was shown.
    Shown(Option<Box<View>>),
    /// To a list.
    Listed {
        /// The leases.
        leases: Vec<View>,
        /// The number after which to go on, unless that was all.
        next: Option<i64>,
    },
    /// To the end of a lease by its number: the lease as it was, but ended.
    Forced(Option<Box<View>>),
    /// To the end of a tenant's leases.
    Cleared {
        /// How many ended.
        ended: usize,
        /// The number after which to go on, unless that was all.
        next: Option<i64>,
        /// Up to which number.
        upto: i64,
    },
    /// To a sweep.
    Swept {
        /// Whether there is more.
        more: bool,
    },
    /// To the question what became of every attempt: by tenant and kind.
    Tallied(Vec<(Row, Counts)>),
}

impl LockOp {
    /// Whether it can take what somebody else may believe to have: what must not happen while
    /// leases may have been lost.
    pub const fn takes(&self) -> bool {
        matches!(
            self,
            Self::Acquire { .. }
                | Self::Hold(_)
                | Self::Relocate(_)
                | Self::Confirm { again: true, .. }
        )
    }
}
