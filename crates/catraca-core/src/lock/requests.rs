//! Requests of locks and slots, as plain data with validation.
//!
//! A request that was validated is within all bounds. It contains the digest of a lease id, never
//! the id.

use super::KEYS_MAX;
use super::id::LeaseKey;
use super::name::validate_name;
use super::refusal::LockRefusal;
use super::terms::{Durability, VersionPolicy};
use crate::request::is_storable;
use crate::time::{Span, Time};

/// The most bytes of `meta`.
pub const META_BYTES_MAX: usize = 1_024;
/// The largest version: what a double, and so JSON in every language, represents exactly.
pub const VERSION_MAX: i64 = (1 << 53) - 1;
/// The longest buffer before or after a slot.
pub const BUFFER_MAX: Span = Span::from_secs(86_400);

/// Acquire names, all or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquire {
    /// The tenant.
    pub tenant: Option<Box<str>>,
    /// The kind of the names.
    pub kind: Box<str>,
    /// The keys: sorted, without duplicates.
    pub keys: Vec<Box<str>>,
    /// The lease to create.
    pub lease: LeaseRequest,
    /// How the version is interpreted.
    pub policy: VersionPolicy,
}

/// Hold a range of time in calendars, all or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The tenant.
    pub tenant: Option<Box<str>>,
    /// The kind of the lease.
    pub kind: Box<str>,
    /// The calendars: sorted, without duplicates.
    pub calendars: Vec<Box<str>>,
    /// The range of time.
    pub range: TimeRange,
    /// The lease to create.
    pub lease: LeaseRequest,
}

/// A half-open range of time, with buffers around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The first instant.
    pub start: Time,
    /// The first instant after the range.
    pub end: Time,
    /// The buffer before it, which must be free too.
    pub before: Span,
    /// The buffer after it, which must be free too.
    pub after: Span,
}

/// The parameters of a new lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// The digest of its lease id.
    pub key: LeaseKey,
    /// The request id, with which the caller can repeat the request.
    pub request: Option<Box<str>>,
    /// The TTL.
    pub ttl: Span,
    /// How long renewals may extend it, from its grant.
    pub hold_max: Span,
    /// The version that the caller gives.
    pub version: Option<i64>,
    /// The label of the holder, for display.
    pub label: Option<Box<str>>,
    /// The metadata of the caller.
    pub meta: Option<Box<str>>,
    /// How long nothing is granted after the store may have lost leases.
    pub grace: Span,
    /// When the grant is answered. A shared store has one durability for all leases and ignores it.
    pub durability: Durability,
}

/// Identifies a lease, and restricts who may access it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The digest of the lease id that the caller sent.
    pub key: LeaseKey,
    /// The only tenant whose leases the caller may access; `None` for every tenant.
    pub tenant: Option<Box<str>>,
}

/// Move a slot to another range, and possibly to other calendars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The proof of the slot.
    pub proof: Proof,
    /// The new calendars; `None` keeps the current ones.
    pub calendars: Option<Vec<Box<str>>>,
    /// The first instant.
    pub start: Time,
    /// The first instant after the range.
    pub end: Time,
    /// How long nothing is moved after the store may have lost leases.
    pub grace: Span,
    /// When the move of a held slot is answered; that of a confirmed slot is always written first.
    pub durability: Durability,
}

/// A query for the availability of a calendar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvailabilityQuery {
    /// The tenant.
    pub tenant: Option<Box<str>>,
    /// The calendar.
    pub calendar: Box<str>,
    /// The first instant of the range.
    pub from: Time,
    /// The first instant after the range.
    pub to: Time,
    /// Shorter free ranges are left out.
    pub min_length: Span,
    /// A lease whose range counts as free.
    pub excluded_lease: Option<LeaseKey>,
}

impl LeaseRequest {
    /// A lease with only a TTL and a maximum hold.
    pub const fn new(key: LeaseKey, ttl: Span, hold_max: Span) -> Self {
        Self {
            key,
            request: None,
            ttl,
            hold_max,
            version: None,
            label: None,
            meta: None,
            grace: Span::ZERO,
            durability: Durability::Memory,
        }
    }

    /// Validates all fields.
    pub fn validate(self) -> Result<Self, LockRefusal> {
        if let Some(request) = &self.request {
            validate_name("request_id", request)?;
        }
        if let Some(label) = &self.label {
            validate_name("owner_label", label)?;
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
    /// Validates all fields, and sorts the keys.
    pub fn validate(mut self) -> Result<Self, LockRefusal> {
        validate_tenant(self.tenant.as_deref())?;
        validate_name("kind", &self.kind)?;
        validate_and_sort("keys", &mut self.keys)?;
        self.lease = self.lease.validate()?;
        if self.policy == VersionPolicy::Monotonic && self.lease.version.is_none() {
            return Err(LockRefusal::NoVersion);
        }
        Ok(self)
    }
}

impl Hold {
    /// Validates all fields, and sorts the calendars.
    pub fn validate(mut self, slot_max: Span) -> Result<Self, LockRefusal> {
        validate_tenant(self.tenant.as_deref())?;
        validate_name("kind", &self.kind)?;
        validate_and_sort("calendars", &mut self.calendars)?;
        self.range.check(slot_max)?;
        self.lease = self.lease.validate()?;
        Ok(self)
    }
}

impl Move {
    /// A move within the slot's calendars, with no grace and the durability `memory`.
    pub const fn new(proof: Proof, start: Time, end: Time) -> Self {
        let grace = Span::ZERO;
        Self { proof, calendars: None, start, end, grace, durability: Durability::Memory }
    }

    /// Validates all fields, and sorts the calendars.
    pub fn validate(mut self, slot_max: Span) -> Result<Self, LockRefusal> {
        if let Some(calendars) = &mut self.calendars {
            validate_and_sort("calendars", calendars)?;
        }
        // A move keeps the buffers of the slot, which were validated when it was held.
        TimeRange::of(self.start, self.end).check(slot_max)?;
        Ok(self)
    }
}

impl TimeRange {
    /// A range without buffers.
    pub const fn of(start: Time, end: Time) -> Self {
        Self { start, end, before: Span::ZERO, after: Span::ZERO }
    }

    /// The first and last instant that the range occupies in a calendar: with its buffers, half
    /// open.
    pub fn occupied_range(&self) -> (Time, Time) {
        (self.start.before(self.before), self.end.after(self.after))
    }

    fn check(&self, slot_max: Span) -> Result<(), LockRefusal> {
        if self.start >= self.end {
            let wanted = "an instant after `start`".to_owned();
            return Err(LockRefusal::Bounds { field: "end", given: self.end.to_rfc3339(), wanted });
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

fn validate_tenant(tenant: Option<&str>) -> Result<(), LockRefusal> {
    tenant.map_or(Ok(()), |tenant| validate_name("tenant", tenant).map(|_| ()))
}

/// Validates a list of names, and sorts it.
fn validate_and_sort(field: &'static str, names: &mut [Box<str>]) -> Result<(), LockRefusal> {
    if names.is_empty() {
        return Err(LockRefusal::Empty { field });
    }
    if names.len() > KEYS_MAX {
        return Err(LockRefusal::TooMany { field, count: names.len(), max: KEYS_MAX });
    }
    for name in names.iter() {
        validate_name(field, name)?;
    }
    // A fixed order makes conflicts and digests independent of the order of the request.
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(LockRefusal::Twice { field, name: pair[0].to_string() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease() -> LeaseRequest {
        let key = LeaseKey::from_bytes([1; 16]);
        LeaseRequest::new(key, Span::from_secs(1), Span::from_secs(1))
    }

    #[test]
    fn a_version_is_at_most_what_a_double_counts_exactly() {
        let validate = |version| LeaseRequest { version: Some(version), ..lease() }.validate();
        assert!(validate(0).is_ok() && validate(9_007_199_254_740_991).is_ok());
        assert!(validate(-1).is_err() && validate(9_007_199_254_740_992).is_err());
    }

    #[test]
    fn metadata_has_at_most_its_bytes() {
        let validate = |bytes| {
            let meta = Some("m".repeat(bytes).into());
            LeaseRequest { meta, ..lease() }.validate()
        };
        assert!(validate(META_BYTES_MAX).is_ok());
        assert!(validate(META_BYTES_MAX + 1).is_err());
    }

    #[test]
    fn a_slot_has_a_length_of_at_most_slot_max() {
        let max = Span::from_secs(10);
        let check =
            |start, end| TimeRange::of(Time::from_micros(start), Time::from_micros(end)).check(max);
        assert!(check(5, 6).is_ok() && check(0, 10_000_000).is_ok());
        assert!(check(5, 5).is_err() && check(6, 5).is_err());
        assert!(check(0, 10_000_001).is_err());
        let endless = TimeRange::of(Time::ZERO, Time::FOREVER);
        assert!(endless.check(Span::FOREVER).is_err());
    }

    #[test]
    fn each_buffer_of_a_slot_is_at_most_a_day() {
        let range = TimeRange::of(Time::ZERO, Time::from_micros(1));
        let longer = Span::from_micros(BUFFER_MAX.micros() + 1);
        let check = |before, after| TimeRange { before, after, ..range }.check(BUFFER_MAX);
        assert!(check(BUFFER_MAX, BUFFER_MAX).is_ok());
        assert!(check(longer, Span::ZERO).is_err() && check(Span::ZERO, longer).is_err());
    }

    #[test]
    fn names_are_sorted_and_none_is_given_twice() {
        let validate = |names: &[&str]| {
            let mut names: Vec<Box<str>> = names.iter().map(|name| Box::from(*name)).collect();
            validate_and_sort("keys", &mut names).map(|()| names)
        };
        assert_eq!(validate(&["b", "a"]).unwrap(), [Box::from("a"), Box::from("b")]);
        assert!(validate(&["b", "a", "b"]).is_err() && validate(&[]).is_err());
        let many: Vec<String> = (0..=KEYS_MAX).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(validate(&many[1..]).is_ok() && validate(&many).is_err());
    }
}
