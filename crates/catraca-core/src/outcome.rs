//! What happened after an admitted check: the other half of a decision.
//!
//! Front ends fill it from an HTTP answer or from the caller's report. Must not interpret it.

use std::io;

/// The longest that an upstream may shut out a caller, in seconds: one day. A broken header must
/// not do it for years; whoever means longer says so again when the day is over.
pub const RETRY_AFTER_SECS_MAX: i64 = 24 * 3_600;

/// What happened next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The HTTP status, or what the caller maps to one: from 100 to 599.
    pub status: Option<u16>,
    /// The answer's JSON body; null when there is none.
    pub body: serde_json::Value,
    /// How large the body is, as far as the front end knows.
    pub body_size: BodySize,
    /// The answer's headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The amount the caller reports, for policies priced by report.
    pub cost: Option<i64>,
}

/// The size of an outcome's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodySize {
    /// The length of the body as compact JSON, measured if a ban rule reads it.
    #[default]
    Unmeasured,
    /// The length in bytes in which it was received.
    Bytes(usize),
    /// More than the catalog's `body_bytes_max`: the front end has left the body out.
    OverLimit,
}

impl Outcome {
    /// An outcome that is only a status.
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// The seconds of a `Retry-After` header, if one can be read; at most
    /// [`RETRY_AFTER_SECS_MAX`].
    pub fn retry_after_secs(&self) -> Option<i64> {
        let (_, value) = self.headers.iter().find(|(name, _)| name == "retry-after")?;
        let value = value.trim();
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        // Digits that fit no integer are a number too.
        let seconds = digits.then(|| value.parse().unwrap_or(i64::MAX))?;
        Some(seconds.min(RETRY_AFTER_SECS_MAX)).filter(|seconds| *seconds > 0)
    }

    /// The size of the body in bytes, if it is at most this.
    pub fn body_bytes_within(&self, bytes_max: usize) -> Option<usize> {
        let bytes = match self.body_size {
            BodySize::Unmeasured => json_bytes_within(&self.body, bytes_max)?,
            BodySize::Bytes(bytes) => bytes,
            BodySize::OverLimit => return None,
        };
        Some(bytes).filter(|bytes| *bytes <= bytes_max)
    }
}

/// The length of a value as compact JSON, if it is at most this; counting stops beyond.
fn json_bytes_within(value: &serde_json::Value, bytes_max: usize) -> Option<usize> {
    let mut room = Room { left: bytes_max };
    serde_json::to_writer(&mut room, value).ok()?;
    Some(bytes_max - room.left)
}

/// Counts the bytes written to it, and fails beyond its size.
struct Room {
    left: usize,
}

impl io::Write for Room {
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
