//! What is locked: a name of some kind, or a calendar, each of one tenant or of none.
//!
//! Names are kept part by part, so no separator can make two of them one. Must not be empty, too
//! long, or hold what no log line should.

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
