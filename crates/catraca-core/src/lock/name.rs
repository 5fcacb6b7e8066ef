//! Names of locks and calendars, each of one tenant or of none.
//!
//! A name is stored part by part, so that no separator in it can make two names equal.

use super::digest::Digest;
use super::refusal::LockRefusal;

/// The longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 256;

/// The name of a lock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockName {
    /// The tenant, if there is one.
    pub tenant: Option<Box<str>>,
    /// The kind, such as `payment`.
    pub kind: Box<str>,
    /// The key that the caller locks.
    pub key: Box<str>,
}

/// The name of a calendar.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CalendarName {
    /// The tenant, if there is one.
    pub tenant: Option<Box<str>>,
    /// The calendar.
    pub calendar: Box<str>,
}

/// The digest of a name with its namespace, for stores that index by digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameDigest(pub [u8; 16]);

impl LockName {
    /// The digest of this name in a namespace.
    pub fn digest(&self, namespace: &str) -> NameDigest {
        let mut digest = Digest::new("name");
        digest.text(Some(namespace)).text(self.tenant.as_deref());
        digest.text(Some(&self.kind)).text(Some(&self.key));
        NameDigest(digest.finish())
    }
}

impl CalendarName {
    /// The digest of this calendar in a namespace.
    pub fn digest(&self, namespace: &str) -> NameDigest {
        let mut digest = Digest::new("calendar");
        digest.text(Some(namespace)).text(self.tenant.as_deref()).text(Some(&self.calendar));
        NameDigest(digest.finish())
    }
}

impl NameDigest {
    /// The digest of a tenant in a namespace.
    pub fn of_tenant(namespace: &str, tenant: Option<&str>) -> Self {
        let mut digest = Digest::new("tenant");
        digest.text(Some(namespace)).text(tenant);
        Self(digest.finish())
    }

    /// The digest of a namespace.
    pub fn of_namespace(namespace: &str) -> Self {
        Self(Digest::new("namespace").text(Some(namespace)).finish())
    }
}

/// Validates a name: not empty, not too long, no control characters. `field` is the parameter that
/// errors report.
pub fn validate_name(field: &'static str, text: &str) -> Result<Box<str>, LockRefusal> {
    if text.is_empty() {
        return Err(LockRefusal::Empty { field });
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(LockRefusal::TooLong { field, bytes: text.len(), max: NAME_BYTES_MAX });
    }
    if text.chars().any(char::is_control) {
        return Err(LockRefusal::Control { field });
    }
    Ok(text.into())
}
