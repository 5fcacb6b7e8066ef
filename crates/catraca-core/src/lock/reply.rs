//! What operations on locks and slots answer: plain data, without a proof in it.
//!
//! A conflict is an answer, never an error. Must not name who else knows a lease's proof.

use std::sync::Arc;

use super::id::LeaseKey;
use super::name::{CalendarName, LockName};
use super::op::Range;
use super::refusal::LockRefusal;
use crate::time::{Span, Time};

/// Where a lease is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Held until it expires.
    Held,
    /// A slot that is taken for good.
    Confirmed,
    /// Given back, or cancelled.
    Released,
    /// Over by itself.
    Expired,
    /// Ended by an operator.
    Forced,
}

/// A lease as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// What it is found by; no proof.
    pub key: LeaseKey,
    /// Its number: higher than that of every lease before it in this namespace.
    pub fence: i64,
    /// Of what kind.
    pub kind: Box<str>,
    /// What it is about.
    pub what: What,
    /// The caller's own number, or the fence.
    pub version: i64,
    /// Who holds it.
    pub label: Option<Box<str>>,
    /// The caller's own note.
    pub meta: Option<Box<str>>,
    /// Since when.
    pub acquired_at: Time,
    /// The first instant at which it is over; forever once it is confirmed.
    pub expires_at: Time,
    /// The instant past which it cannot be renewed.
    pub hold_until: Time,
    /// How long it lasts, or was last asked to.
    pub ttl: Span,
    /// Where it is in its life.
    pub state: State,
}

/// What a lease is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Names.
    Names(Vec<Arc<LockName>>),
    /// A range of time in calendars.
    Slot(Vec<Arc<CalendarName>>, Range),
}

/// The answer to an acquire or a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// It is held.
    Granted(Box<View>),
    /// It was held already, by the same request.
    Again(Box<View>),
    /// Somebody else holds part of it.
    Conflict(Box<Conflict>),
    /// A version that is not higher than the last.
    Stale {
        /// Which name.
        name: Arc<LockName>,
        /// The highest version so far.
        last: i64,
    },
    /// The call is wrong.
    Refused(LockRefusal),
}

/// Who holds what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Which name or calendar.
    pub taken: Box<str>,
    /// The holder.
    pub holder: View,
    /// When it may be free; forever if it is confirmed.
    pub free_at: Time,
}

/// The answer to a renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// It lasts until then.
    Extended(Box<View>),
    /// It lasts as long as renewals may stretch it, and will not be longer.
    AtMost(Box<View>),
    /// It is over.
    Over(State),
    /// Nobody's, or somebody else's.
    NotHolder,
}

/// The answer to a release or a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was held, and is free.
    Released,
    /// The same lease was given back before.
    Already,
    /// It was over by itself.
    Expired,
    /// Nobody's, or somebody else's.
    NotHolder,
}

/// The answer to a confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmed {
    /// It is taken for good.
    Done(Box<View>),
    /// The hold is over.
    Over {
        /// How it ended.
        state: State,
        /// Whether nobody else has any of it yet.
        still_free: bool,
    },
    /// Nobody's, or somebody else's.
    NotHolder,
}

/// The answer to a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It is there now, with a new number.
    Done(Box<View>),
    /// Somebody else is there; it stays where it was.
    Conflict(Box<Conflict>),
    /// It is over.
    Over(State),
    /// Nobody's, or somebody else's.
    NotHolder,
}

/// What a calendar looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Availability {
    /// What is taken, in order, cut to the range that was asked for.
    pub busy: Vec<Busy>,
    /// What is free, in order.
    pub free: Vec<(Time, Time)>,
    /// Where to look on, if there was more than one answer may hold.
    pub next: Option<Time>,
}

/// One taken range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The first instant.
    pub start: Time,
    /// The first instant after it.
    pub end: Time,
    /// Held or confirmed.
    pub state: State,
    /// The number of its lease.
    pub fence: i64,
    /// When it may be free; forever if it is confirmed.
    pub free_at: Time,
}

impl State {
    /// The word used on every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Confirmed => "confirmed",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Forced => "forced",
        }
    }

    /// Whether the lease is in force, as far as this knows.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Held | Self::Confirmed)
    }
}

impl Ended {
    /// The word used on every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Already => "already_released",
            Self::Expired => "expired",
            Self::NotHolder => "not_holder",
        }
    }
}

impl View {
    /// Whose it is.
    pub fn tenant(&self) -> Option<&str> {
        match &self.what {
            What::Names(names) => names.first().and_then(|name| name.tenant.as_deref()),
            What::Slot(calendars, _) => calendars.first().and_then(|name| name.tenant.as_deref()),
        }
    }
}
