//! The seconds of an upstream's `Retry-After` are those that are written, up to a day.

use catraca_core::outcome::{Outcome, RETRY_AFTER_SECS_MAX};

/// The input is the value of the header.
pub fn check(data: &[u8]) {
    let Ok(value) = std::str::from_utf8(data) else { return };
    let headers = vec![("retry-after".to_owned(), value.to_owned())];
    let read = Outcome { headers, ..Outcome::default() }.retry_after_secs();
    let digits = value.trim();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let significant = digits.trim_start_matches('0');
    let expected = match significant.len() {
        _ if !is_number => None,
        0 => None,
        1..=5 => significant.parse().ok().map(|seconds: i64| seconds.min(RETRY_AFTER_SECS_MAX)),
        _ => Some(RETRY_AFTER_SECS_MAX),
    };
    assert_eq!(read, expected, "{value:?}");
}
