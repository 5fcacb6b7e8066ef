//! Outcome: what happened after an admitted check.
//!
//! Front ends fill it in from an HTTP response or from the caller's report. It is interpreted when
//! the settle is planned.

use std::io;

/// The longest block that an upstream's `Retry-After` can start: one day, in seconds. A broken
/// header must not block a caller for years; an upstream that needs longer repeats the header.
pub const RETRY_AFTER_SECS_MAX: i64 = 24 * 3_600;

/// What happened after the check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The HTTP status, or the caller's equivalent: from 100 to 599.
    pub status: Option<u16>,
    /// The JSON body of the response; null if there is none.
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

    /// The size of the body in bytes; `None` if it exceeds `bytes_max`.
    pub fn body_bytes_within(&self, bytes_max: usize) -> Option<usize> {
        let bytes = match self.body_size {
            BodySize::Unmeasured => json_bytes_within(&self.body, bytes_max)?,
            BodySize::Bytes(bytes) => bytes,
            BodySize::OverLimit => return None,
        };
        Some(bytes).filter(|bytes| *bytes <= bytes_max)
    }
}

/// The length of a value as compact JSON; `None` if it exceeds `bytes_max`, at which measuring
/// stops.
fn json_bytes_within(value: &serde_json::Value, bytes_max: usize) -> Option<usize> {
    let mut budget = ByteBudget { left: bytes_max };
    serde_json::to_writer(&mut budget, value).ok()?;
    Some(bytes_max - budget.left)
}

/// Counts the bytes that are written, and fails when the maximum is exceeded.
struct ByteBudget {
    left: usize,
}

impl io::Write for ByteBudget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.checked_sub(bytes.len());
        self.left = left.ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_as_large_as_its_compact_json() {
        let body = serde_json::json!({"a": [1, -2.5, null, true], "é\n": "\"x\""});
        let bytes = body.to_string().len();
        let outcome = Outcome { body, ..Outcome::default() };
        assert_eq!(outcome.body_bytes_within(bytes), Some(bytes));
        assert_eq!(outcome.body_bytes_within(bytes - 1), None);
        let known = Outcome { body_size: BodySize::Bytes(9), ..outcome };
        assert_eq!(known.body_bytes_within(9), Some(9));
        assert_eq!(known.body_bytes_within(8), None);
        let left_out = Outcome { body_size: BodySize::OverLimit, ..known };
        assert_eq!(left_out.body_bytes_within(usize::MAX), None);
    }
}
