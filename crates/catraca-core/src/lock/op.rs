//! Operations on locks and slots: plain data, complete in itself, that any store can apply.
//!
//! Every bound is checked when one is made, so what exists makes sense. Must not hold a proof: only
//! its digest.

use super::KEYS_MAX;
use super::id::LeaseKey;
use super::name::named;
use super::refusal::LockRefusal;
use super::terms::VersionPolicy;
use crate::request::is_storable;
use crate::time::{Span, Time};

/// The longest note of a caller's own, in bytes.
pub const META_BYTES_MAX: usize = 1_024;
/// The largest version: what every language counts exactly.
pub const VERSION_MAX: i64 = (1 << 53) - 1;
/// The longest buffer before or after a slot.
pub const BUFFER_MAX: Span = Span::from_secs(86_400);

/// Take some names, all or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquire {
    /// Whose they are.
    pub tenant: Option<Box<str>>,
    /// Of what kind they are.
    pub kind: Box<str>,
    /// Which ones: sorted, each once.
    pub keys: Vec<Box<str>>,
    /// What the lease is to be.
    pub lease: Wanted,
    /// What its version means.
    pub policy: VersionPolicy,
}

/// Take a range of time in some calendars, all or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Whose they are.
    pub tenant: Option<Box<str>>,
    /// Of what kind the lease is.
    pub kind: Box<str>,
    /// Which ones: sorted, each once.
    pub calendars: Vec<Box<str>>,
    /// When.
    pub range: Range,
    /// What the lease is to be.
    pub lease: Wanted,
}

/// A range of time, half open, with what is kept free around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first instant.
    pub start: Time,
    /// The first instant after it.
    pub end: Time,
    /// What is kept free before it.
    pub before: Span,
    /// What is kept free after it.
    pub after: Span,
}

/// What a new lease is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The digest of its proof.
    pub key: LeaseKey,
    /// The caller's own name for the request, so that it can be repeated.
    pub request: Option<Box<str>>,
    /// How long it lasts.
    pub ttl: Span,
    /// How long renewals may stretch it.
    pub hold_max: Span,
    /// The caller's own number.
    pub version: Option<i64>,
    /// Who holds it, for people.
    pub label: Option<Box<str>>,
    /// The caller's own note.
    pub meta: Option<Box<str>>,
    /// How long nothing is granted after the store may have lost leases.
    pub grace: Span,
}

/// Whose lease is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The digest of the proof that was shown.
    pub key: LeaseKey,
    /// The only tenant whose leases the caller may touch; none is every tenant's.
    pub tenant: Option<Box<str>>,
}

/// Another time, and perhaps other calendars, for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which slot.
    pub proof: Proof,
    /// Other calendars; none is the same ones.
    pub calendars: Option<Vec<Box<str>>>,
    /// The first instant.
    pub start: Time,
    /// The first instant after it.
    pub end: Time,
    /// How long nothing is moved after the store may have lost leases.
    pub grace: Span,
}

/// A look at a calendar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whose it is.
    pub tenant: Option<Box<str>>,
    /// Which one.
    pub calendar: Box<str>,
    /// From when.
    pub from: Time,
    /// To before when.
    pub to: Time,
    /// Shorter gaps are not told.
    pub min_length: Span,
    /// A lease that does not count.
    pub without: Option<LeaseKey>,
}

impl Wanted {
    /// A lease of this digest that lasts so long, and nothing else.
    pub const fn new(key: LeaseKey, ttl: Span, hold_max: Span) -> Self {
        let (request, version, label, meta, grace) = (None, None, None, None, Span::ZERO);
        Self { key, request, ttl, hold_max, version, label, meta, grace }
    }

    /// The same if everything in it is within bounds.
    pub fn checked(self) -> Result<Self, LockRefusal> {
        if let Some(request) = &self.request {
            named("request_id", request)?;
        }
        if let Some(label) = &self.label {
            named("owner_label", label)?;
        }
        let bytes = self.meta.as_deref().map_or(0, str::len);
        if bytes > META_BYTES_MAX {
            return Err(LockRefusal::TooLong { field: "meta", bytes, max: META_BYTES_MAX });
        }
        if !self.meta.as_deref().is_none_or(is_storable) {
            return Err(LockRefusal::NotStorable { field: "meta" });
        }
        match self.version {
            Some(version) if !(0..=VERSION_MAX).contains(&version) => Err(LockRefusal::Bounds {
                field: "version",
                given: version.to_string(),
                wanted: format!("a whole number from 0 to {VERSION_MAX}"),
            }),
            _ => Ok(self),
        }
    }
}

impl Acquire {
    /// The same if everything in it is within bounds; its keys are put in order.
    pub fn checked(mut self) -> Result<Self, LockRefusal> {
        tenant(self.tenant.as_deref())?;
        named("kind", &self.kind)?;
        ordered("keys", &mut self.keys)?;
        self.lease = self.lease.checked()?;
        if self.policy == VersionPolicy::Monotonic && self.lease.version.is_none() {
            return Err(LockRefusal::NoVersion);
        }
        Ok(self)
    }
}

impl Hold {
    /// The same if everything in it is within bounds; its calendars are put in order.
    pub fn checked(mut self, slot_max: Span) -> Result<Self, LockRefusal> {
        tenant(self.tenant.as_deref())?;
        named("kind", &self.kind)?;
        ordered("calendars", &mut self.calendars)?;
        self.range.check(slot_max)?;
        self.lease = self.lease.checked()?;
        Ok(self)
    }
}

impl Move {
    /// The same if everything in it is within bounds; its calendars are put in order.
    pub fn checked(mut self, slot_max: Span) -> Result<Self, LockRefusal> {
        if let Some(calendars) = &mut self.calendars {
            ordered("calendars", calendars)?;
        }
        let (before, after) = (Span::ZERO, Span::ZERO);
        Range { start: self.start, end: self.end, before, after }.check(slot_max)?;
        Ok(self)
    }
}

impl Range {
    /// A range with nothing kept free around it.
    pub const fn of(start: Time, end: Time) -> Self {
        Self { start, end, before: Span::ZERO, after: Span::ZERO }
    }

    /// What is taken of the calendar: the range and what is kept free around it.
    pub fn taken(&self) -> (Time, Time) {
        (self.start.before(self.before), self.end.after(self.after))
    }

    fn check(&self, slot_max: Span) -> Result<(), LockRefusal> {
        if self.start >= self.end {
            let (field, wanted) = ("end", "an instant after `start`".to_owned());
            return Err(LockRefusal::Bounds { field, given: self.end.to_rfc3339(), wanted });
        }
        if self.end.is_forever() || self.end.since(self.start) > slot_max {
            let wanted = format!("an instant at most {slot_max} after `start`");
            return Err(LockRefusal::Bounds { field: "end", given: self.end.to_rfc3339(), wanted });
        }
        let buffers = [("buffer_before_ms", self.before), ("buffer_after_ms", self.after)];
        match buffers.into_iter().find(|(_, span)| *span > BUFFER_MAX) {
            Some((field, span)) => Err(LockRefusal::Bounds {
                field,
                given: span.ceil_millis().to_string(),
                wanted: format!("a whole number from 0 to {}", BUFFER_MAX.ceil_millis()),
            }),
            None => Ok(()),
        }
    }
}

fn tenant(tenant: Option<&str>) -> Result<(), LockRefusal> {
    tenant.map_or(Ok(()), |tenant| named("tenant", tenant).map(|_| ()))
}

fn ordered(field: &'static str, names: &mut [Box<str>]) -> Result<(), LockRefusal> {
    if names.is_empty() {
        return Err(LockRefusal::Empty { field });
    }
    if names.len() > KEYS_MAX {
        return Err(LockRefusal::TooMany { field, count: names.len(), max: KEYS_MAX });
    }
    for name in names.iter() {
        named(field, name)?;
    }
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(LockRefusal::Twice { field, name: pair[0].to_string() }),
        None => Ok(()),
    }
}
