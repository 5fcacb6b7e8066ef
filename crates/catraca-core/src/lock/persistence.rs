//! Persisted leases, versions and fences, as plain data.

use super::id::LeaseKey;
use super::name::LockName;
use super::reply::LeaseState;
use super::requests::TimeRange;
use crate::time::{Span, Time};

/// A live lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistedLease {
    /// The key of the lease.
    pub key: LeaseKey,
    /// The tenant.
    pub tenant: Option<Box<str>>,
    /// The kind.
    pub kind: Box<str>,
    /// The names, or the calendars of a slot.
    pub names: Vec<Box<str>>,
    /// The range of time, for a slot.
    pub range: Option<TimeRange>,
    /// The fence.
    pub fence: i64,
    /// The version that the caller gave, or the fence.
    pub version: i64,
    /// The label of the holder.
    pub label: Option<Box<str>>,
    /// The metadata of the caller.
    pub meta: Option<Box<str>>,
    /// When it was granted.
    pub acquired_at: Time,
    /// When it expires; forever for a confirmed slot.
    pub expires_at: Time,
    /// The instant beyond which it cannot be extended.
    pub hold_until: Time,
    /// The TTL.
    pub ttl: Span,
    /// Held or confirmed.
    pub state: LeaseState,
    /// The digests of the request id, and of the parameters of the request.
    pub request: Option<([u8; 16], [u8; 16])>,
}

/// The highest version of a name with the monotonic version policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistedVersion {
    /// The name.
    pub name: LockName,
    /// The version of its last grant.
    pub version: i64,
    /// When it expires.
    pub until: Time,
}

/// Upper bounds of what a namespace has given out. They are persisted ahead of use, so that after a
/// crash no fence repeats and no lost lease is granted again too early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PersistedFence {
    /// No fence above this one was given out.
    pub ceiling: i64,
    /// No lease lasts longer than this without a renewal.
    pub longest: Span,
    /// After a clean shutdown: how long leases that are not persisted may still last.
    pub left: Option<Span>,
}

/// A change of locks to persist. The first field is the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockWrite {
    /// The upper bounds of a namespace.
    Fence(Box<str>, PersistedFence),
    /// A new or changed lease.
    Keep(Box<str>, Box<PersistedLease>),
    /// A lease that has ended.
    Drop(Box<str>, LeaseKey),
    /// The highest version of a name.
    Version(Box<str>, Box<PersistedVersion>),
    /// Delete versions that expire up to this instant.
    Forget(Box<str>, Time),
}
