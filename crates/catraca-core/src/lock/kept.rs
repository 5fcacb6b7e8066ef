//! What is kept of leases on disk, and brought back: plain data.
//!
//! Must not hold a proof.

use super::id::LeaseKey;
use super::name::LockName;
use super::op::Range;
use super::reply::State;
use crate::time::{Span, Time};

/// A lease that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLease {
    /// What it is found by.
    pub key: LeaseKey,
    /// Whose it is.
    pub tenant: Option<Box<str>>,
    /// Of what kind.
    pub kind: Box<str>,
    /// Its names, or the calendars of its slot.
    pub names: Vec<Box<str>>,
    /// The range of time, for a slot.
    pub range: Option<Range>,
    /// Its number.
    pub fence: i64,
    /// The caller's own number, or the fence.
    pub version: i64,
    /// Who holds it.
    pub label: Option<Box<str>>,
    /// The caller's own note.
    pub meta: Option<Box<str>>,
    /// Since when.
    pub acquired_at: Time,
    /// When it is over; forever once it is confirmed.
    pub expires_at: Time,
    /// The instant past which it cannot be renewed.
    pub hold_until: Time,
    /// How long it lasts.
    pub ttl: Span,
    /// Held or confirmed.
    pub state: State,
    /// The digests of the request's name and of what it asked for.
    pub request: Option<([u8; 16], [u8; 16])>,
}

/// The highest version of a name that wants each grant's to be higher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptVersion {
    /// Which name.
    pub name: LockName,
    /// The version of its last grant.
    pub version: i64,
    /// Until when it is remembered.
    pub until: Time,
}

/// What a namespace may have given out, kept ahead of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptFence {
    /// No number above this was given out.
    pub ceiling: i64,
    /// No lease lasted longer than this without a renewal.
    pub longest: Span,
    /// How much longer leases may be in force that are not on disk, if the process ended in order.
    pub left: Option<Span>,
}

/// Something about locks that is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockDeed {
    /// What a namespace may have given out.
    Fence(Box<str>, KeptFence),
    /// A lease of a namespace, new or changed.
    Keep(Box<str>, Box<KeptLease>),
    /// A lease of a namespace that has ended.
    Drop(Box<str>, LeaseKey),
    /// The highest version of a name in a namespace.
    Version(Box<str>, Box<KeptVersion>),
    /// Versions of a namespace that are remembered only up to an instant.
    Forget(Box<str>, Time),
}
