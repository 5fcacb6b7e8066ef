//! Outcome: what happened after an admitted check.
//!
//! Front ends fill it in from an HTTP response or from the caller's report. It is interpreted when
//! the settle is planned.

#[cfg(feature = "outcome-body")]
mod body_size;
#[cfg(feature = "outcome-body")]
mod outcome_body;
#[cfg(feature = "outcome-body")]
mod unique_keys;

#[cfg(feature = "outcome-body")]
pub use outcome_body::OutcomeBody;

/// The longest block that an upstream's `Retry-After` can start: one day, in seconds. A broken
/// header must not block a caller for years; an upstream that needs longer repeats the header.
pub const RETRY_AFTER_SECS_MAX: i64 = 24 * 3_600;

/// What happened after the check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The HTTP status, or the caller's equivalent: from 100 to 599.
    pub status: Option<u16>,
    /// The JSON body of the response; null if there is none. Only conditions read it.
    #[cfg(feature = "outcome-body")]
    pub body: serde_json::Value,
    /// The size of the body, as far as the front end knows it.
    pub body_size: BodySize,
    /// Whether the response had a body that is not readable as JSON; then `body` is null.
    pub body_invalid: bool,
    /// The headers of the response, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The cost that the caller reports, for policies with `cost = "reported"`.
    pub cost: Option<i64>,
}

/// The size of an outcome's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodySize {
    /// Not known: the length as compact JSON is measured if a ban rule reads the body.
    #[default]
    Unmeasured,
    /// The number of bytes that were received.
    Bytes(usize),
    /// More than the catalog's `body_bytes_max`; the front end has dropped the body.
    OverLimit,
}

impl Outcome {
    /// An outcome with a status and nothing else.
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// The same outcome with this body.
    #[cfg(feature = "outcome-body")]
    #[must_use]
    pub fn with_body(self, body: OutcomeBody) -> Self {
        Self { body: body.value, body_size: body.size, body_invalid: body.is_invalid, ..self }
    }

    /// The seconds of the `Retry-After` header, at most [`RETRY_AFTER_SECS_MAX`]. `None` if there
    /// is none, or if it is a date or zero.
    pub fn retry_after_secs(&self) -> Option<i64> {
        let (_, value) = self.headers.iter().find(|(name, _)| name == "retry-after")?;
        let value = value.trim();
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        // More digits than an `i64` has are still a valid number, above the maximum.
        let seconds = digits.then(|| value.parse().unwrap_or(i64::MAX))?;
        Some(seconds.min(RETRY_AFTER_SECS_MAX)).filter(|seconds| *seconds > 0)
    }

    /// Whether there is a body that conditions can read.
    pub fn has_body(&self) -> bool {
        #[cfg(feature = "outcome-body")]
        return !self.body.is_null();
        #[cfg(not(feature = "outcome-body"))]
        false
    }
}
