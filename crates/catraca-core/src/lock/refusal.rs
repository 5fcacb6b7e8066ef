//! Refusals of lock requests: what is wrong with the input, and how to fix it.
//!
//! A refused request changes nothing. A conflict is not a refusal.

use thiserror::Error;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LockRefusal {
    /// A name or a list is empty.
    #[error("`{field}` is empty: send a value")]
    Empty {
        /// The field.
        field: &'static str,
    },
    /// A text is too long.
    #[error("`{field}` has {bytes} bytes of at most {max}: send less, or a hash of it")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The maximum in bytes.
        max: usize,
    },
    /// A name contains a control character.
    #[error("`{field}` contains a control character, such as a line break: remove it")]
    Control {
        /// The field.
        field: &'static str,
    },
    /// A text contains a character that stores cannot hold.
    #[error("`{field}` contains U+0000, which cannot be stored: remove it")]
    NotStorable {
        /// The field.
        field: &'static str,
    },
    /// A number or an instant is out of range.
    #[error("`{field}` is {given}: send {wanted}")]
    Bounds {
        /// The field.
        field: &'static str,
        /// The value that was sent.
        given: String,
        /// The valid values.
        wanted: String,
    },
    /// A list is too long.
    #[error("{count} `{field}` are too many: send at most {max}")]
    TooMany {
        /// The field.
        field: &'static str,
        /// Its length.
        count: usize,
        /// The maximum length.
        max: usize,
    },
    /// A list contains a name twice.
    #[error("`{field}` contains `{name}` twice: send it once")]
    Twice {
        /// The field.
        field: &'static str,
        /// The name.
        name: String,
    },
    /// The version policy is monotonic, but there is no version.
    #[error("`version_policy` is monotonic, which needs a `version`: send one")]
    NoVersion,
    /// The `request_id` was used for a request with other parameters.
    #[error(
        "`request_id` was used for a request with other parameters: send those again, or another id"
    )]
    RequestIdReused,
    /// The lease of this `request_id` has ended.
    #[error("the lease of this `request_id` has ended: send another id for a new lease")]
    RequestExpired,
    /// The namespace has the maximum number of leases or versions.
    #[error("the namespace has its maximum of {max} leases: release some, or wait")]
    Full {
        /// The maximum.
        max: usize,
    },
}

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
