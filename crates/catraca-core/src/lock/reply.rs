//! Replies of operations on locks and slots, as plain data.
//!
//! A conflict is a reply, not an error. No reply contains a lease id.

use std::sync::Arc;

use super::id::LeaseKey;
use super::name::{CalendarName, LockName};
use super::refusal::LockRefusal;
use super::requests::TimeRange;
use crate::time::{Span, Time};

/// The state of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Held until it expires.
    Held,
    /// A confirmed slot, which never expires.
    Confirmed,
    /// Released, or cancelled, by its holder.
    Released,
    /// Expired.
    Expired,
    /// Ended by an operator.
    Forced,
}

/// A lease on names or on a range of time, as replies report it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The digest of its lease id.
    pub key: LeaseKey,
    /// The fencing token: higher than that of every earlier grant in this namespace.
    pub fence: i64,
    /// The kind.
    pub kind: Box<str>,
    /// The names or the range that it holds.
    pub target: LeaseTarget,
    /// The version that the caller gave, or the fence.
    pub version: i64,
    /// The label of the holder.
    pub label: Option<Box<str>>,
    /// The metadata of the caller.
    pub meta: Option<Box<str>>,
    /// When it was granted.
    pub acquired_at: Time,
    /// The first instant at which it is not held; forever for a confirmed slot.
    pub expires_at: Time,
    /// The instant beyond which it cannot be extended.
    pub hold_until: Time,
    /// The TTL of the grant or of the last renewal.
    pub ttl: Span,
    /// The state.
    pub state: LeaseState,
}

/// What a lease holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseTarget {
    /// Names.
    Names(Vec<Arc<LockName>>),
    /// A range of time in calendars.
    Slot(Vec<Arc<CalendarName>>, TimeRange),
}

/// The reply to an acquire or a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireReply {
    /// The lease is granted.
    Granted(Box<Lease>),
    /// The same request was granted before; this is its lease.
    Again(Box<Lease>),
    /// Another lease holds a name or part of the range.
    Conflict(Box<Conflict>),
    /// The version is not higher than the last one.
    Stale {
        /// The name.
        name: Arc<LockName>,
        /// The highest version so far.
        last: i64,
    },
    /// The request is invalid.
    Refused(LockRefusal),
}

/// The lease that holds a requested name or range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The first requested name or calendar that is taken.
    pub taken: Box<str>,
    /// The lease that holds it.
    pub holder: Lease,
    /// When it is free unless it is extended; forever for a confirmed slot.
    pub free_at: Time,
}

/// The reply to a renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenewReply {
    /// The lease was extended.
    Extended(Box<Lease>),
    /// The lease was not changed: it cannot be extended further.
    AtMost(Box<Lease>),
    /// The lease has ended.
    Over(LeaseState),
    /// There is no such lease, or the caller may not access it.
    NotHolder,
}

/// The reply to a release or a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseReply {
    /// The lease was live and has ended.
    Released,
    /// The lease was released before.
    Already,
    /// The lease had expired.
    Expired,
    /// There is no such lease, or the caller may not access it.
    NotHolder,
}

/// The reply to a confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfirmReply {
    /// The slot is confirmed.
    Done(Box<Lease>),
    /// The hold has ended.
    Over {
        /// How it ended.
        state: LeaseState,
        /// Whether its range is still free.
        still_free: bool,
    },
    /// There is no such lease, or the caller may not access it.
    NotHolder,
}

/// The reply to a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveReply {
    /// The slot was moved, and has a new fence.
    Done(Box<Lease>),
    /// The range is taken; the slot stays where it was.
    Conflict(Box<Conflict>),
    /// The slot has ended.
    Over(LeaseState),
    /// There is no such lease, or the caller may not access it.
    NotHolder,
}

/// The availability of a calendar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Availability {
    /// The busy ranges, sorted and cut to the requested range.
    pub busy: Vec<Busy>,
    /// The free ranges, sorted.
    pub free: Vec<(Time, Time)>,
    /// Where to continue, if the busy ranges did not fit in one reply.
    pub next: Option<Time>,
}

/// One busy range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The first instant.
    pub start: Time,
    /// The first instant after it.
    pub end: Time,
    /// Held or confirmed.
    pub state: LeaseState,
    /// The fence of its lease.
    pub fence: i64,
    /// When it is free unless it is extended; forever for a confirmed slot.
    pub free_at: Time,
}

impl LeaseState {
    /// The name of the state on every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Confirmed => "confirmed",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Forced => "forced",
        }
    }

    /// Whether the lease is held or confirmed. A held lease may have expired: compare `expires_at`
    /// too.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Held | Self::Confirmed)
    }
}

impl ReleaseReply {
    /// The name of the result on every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Already => "already_released",
            Self::Expired => "expired",
            Self::NotHolder => "not_holder",
        }
    }
}

impl Lease {
    /// The tenant, which all names of a lease share.
    pub fn tenant(&self) -> Option<&str> {
        match &self.target {
            LeaseTarget::Names(names) => names.first().and_then(|name| name.tenant.as_deref()),
            LeaseTarget::Slot(calendars, _) => {
                calendars.first().and_then(|name| name.tenant.as_deref())
            }
        }
    }
}
