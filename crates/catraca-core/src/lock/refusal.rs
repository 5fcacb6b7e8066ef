//! Refusals of lock requests: what is wrong with the input, and how to fix it.
//!
//! A refused request changes nothing. A conflict is not a refusal.

use std::fmt;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockRefusal {
    /// A name or a list is empty.
    Empty {
        /// The field.
        field: &'static str,
    },
    /// A text is too long.
    TooLong {
        /// The field.
        field: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The maximum in bytes.
        max: usize,
    },
    /// A name contains a control character.
    Control {
        /// The field.
        field: &'static str,
    },
    /// A text contains a character that stores cannot hold.
    NotStorable {
        /// The field.
        field: &'static str,
    },
    /// A number or an instant is out of range.
    Bounds {
        /// The field.
        field: &'static str,
        /// The value that was sent.
        given: String,
        /// The valid values.
        wanted: String,
    },
    /// A list is too long.
    TooMany {
        /// The field.
        field: &'static str,
        /// Its length.
        count: usize,
        /// The maximum length.
        max: usize,
    },
    /// A list contains a name twice.
    Twice {
        /// The field.
        field: &'static str,
        /// The name.
        name: String,
    },
    /// The version policy is monotonic, but there is no version.
    NoVersion,
    /// The `request_id` was used for a request with other parameters.
    RequestIdReused,
    /// The lease of this `request_id` has ended.
    RequestExpired,
    /// The namespace has the maximum number of leases or versions.
    Full {
        /// The maximum.
        max: usize,
    },
}

impl fmt::Display for LockRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { field } => write!(f, "`{field}` is empty: send a value"),
            Self::TooLong { field, bytes, max } => write!(
                f,
                "`{field}` has {bytes} bytes of at most {max}: send less, or a hash of it"
            ),
            Self::Control { field } => {
                write!(f, "`{field}` contains a control character, such as a line break: remove it")
            }
            Self::NotStorable { field } => {
                write!(f, "`{field}` contains U+0000, which cannot be stored: remove it")
            }
            Self::Bounds { field, given, wanted } => {
                write!(f, "`{field}` is {given}: send {wanted}")
            }
            Self::TooMany { field, count, max } => {
                write!(f, "{count} `{field}` are too many: send at most {max}")
            }
            Self::Twice { field, name } => {
                write!(f, "`{field}` contains `{name}` twice: send it once")
            }
            Self::NoVersion => {
                f.write_str("`version_policy` is monotonic, which needs a `version`: send one")
            }
            Self::RequestIdReused => f.write_str(
                "`request_id` was used for a request with other parameters: send those again, or \
                 another id",
            ),
            Self::RequestExpired => f.write_str(
                "the lease of this `request_id` has ended: send another id for a new lease",
            ),
            Self::Full { max } => {
                write!(f, "the namespace has its maximum of {max} leases: release some, or wait")
            }
        }
    }
}

impl std::error::Error for LockRefusal {}

impl LockRefusal {
    /// The error code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::RequestIdReused => "request-id-reused",
            Self::RequestExpired => "request-expired",
            Self::Full { .. } => "locks-full",
            Self::Empty { .. }
            | Self::TooLong { .. }
            | Self::Control { .. }
            | Self::NotStorable { .. }
            | Self::Bounds { .. }
            | Self::TooMany { .. }
            | Self::Twice { .. }
            | Self::NoVersion => "bad-lock",
        }
    }
}
