//! The size of an outcome's body: as received, or as compact JSON.

use std::io;

use super::{BodySize, Outcome};

impl Outcome {
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
