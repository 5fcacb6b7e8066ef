//! What is locked: a name of some kind, or a calendar, each of one tenant or of none.
//!
//! Names are kept part by part, so no separator can make two of them one. Must not be empty, too
//! long, or hold what no log line should.

use super::digest::Digest;
use super::refusal::LockRefusal;

/// The longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 256;

/// A name that can be locked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockName {
    /// Whose, if it is anybody's.
    pub tenant: Option<Box<str>>,
    /// What kind of thing it is.
    pub kind: Box<str>,
    /// Which one.
    pub key: Box<str>,
}

/// A calendar whose time can be held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CalendarName {
    /// Whose, if it is anybody's.
    pub tenant: Option<Box<str>>,
    /// Which one.
    pub calendar: Box<str>,
}

/// What a name is found by where texts are not: a digest of all of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(pub [u8; 16]);

impl LockName {
    /// What this name is found by in a namespace.
    pub fn mark(&self, namespace: &str) -> Mark {
        let mut digest = Digest::new("name");
        digest.text(Some(namespace)).text(self.tenant.as_deref());
        digest.text(Some(&self.kind)).text(Some(&self.key));
        Mark(digest.finish())
    }
}

impl CalendarName {
    /// What this calendar is found by in a namespace.
    pub fn mark(&self, namespace: &str) -> Mark {
        let mut digest = Digest::new("calendar");
        digest.text(Some(namespace)).text(self.tenant.as_deref()).text(Some(&self.calendar));
        Mark(digest.finish())
    }
}

impl Mark {
    /// What a tenant, or none, is found by in a namespace.
    pub fn of_tenant(namespace: &str, tenant: Option<&str>) -> Self {
        let mut digest = Digest::new("tenant");
        digest.text(Some(namespace)).text(tenant);
        Self(digest.finish())
    }

    /// What a namespace is found by.
    pub fn of_namespace(namespace: &str) -> Self {
        Self(Digest::new("namespace").text(Some(namespace)).finish())
    }
}

/// A text that may be a name; `field` says what it was given for.
pub fn named(field: &'static str, text: &str) -> Result<Box<str>, LockRefusal> {
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
