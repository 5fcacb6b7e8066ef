//! What is wrong with a call about locks or slots, in words that say how to fix it.
//!
//! Always the input's fault, so it changes nothing. A conflict is not a refusal.

use thiserror::Error;

/// What is wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LockRefusal {
    /// A name of no characters.
    #[error("`{field}` is empty: name it")]
    Empty {
        /// The field.
        field: &'static str,
    },
    /// A text that is too long.
    #[error("`{field}` has {bytes} bytes of at most {max}: send less, or a hash of it")]
    TooLong {
        /// The field.
        field: &'static str,
        /// How long it is.
        bytes: usize,
        /// The most that is taken.
        max: usize,
    },
    /// A name with a control character.
    #[error("`{field}` has a control character, such as a line's end: leave it out")]
    Control {
        /// The field.
        field: &'static str,
    },
    /// A text that the store could not hold.
    #[error("`{field}` contains U+0000, which cannot be stored: remove it")]
    NotStorable {
        /// The field.
        field: &'static str,
    },
    /// A number or a time outside of its bounds.
    #[error("`{field}` is {given}: send {wanted}")]
    Bounds {
        /// The field.
        field: &'static str,
        /// What was sent.
        given: String,
        /// What may be sent.
        wanted: String,
    },
    /// More than one call may ask for.
    #[error("{count} `{field}` are too many: send at most {max}")]
    TooMany {
        /// The field.
        field: &'static str,
        /// How many there were.
        count: usize,
        /// The most that is taken.
        max: usize,
    },
    /// The same name twice.
    #[error("`{field}` names `{name}` twice: name it once")]
    Twice {
        /// The field.
        field: &'static str,
        /// What is there twice.
        name: String,
    },
    /// A monotonic policy without a version.
    #[error("`version_policy` is monotonic, so send a `version`")]
    NoVersion,
    /// The `request_id` stands for another request.
    #[error(
        "`request_id` was used for a request with other parameters: send those again, or another id"
    )]
    OtherRequest,
    /// The `request_id` stands for a lease that has ended.
    #[error("the lease of this `request_id` has ended: send another id to ask anew")]
    RequestOver,
    /// There is no room.
    #[error("there is no room for another lease: {max} are kept at once; release some, or wait")]
    Full {
        /// The most that is kept.
        max: usize,
    },
}

impl LockRefusal {
    /// A name for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::OtherRequest => "request-id-reused",
            Self::RequestOver => "request-expired",
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
