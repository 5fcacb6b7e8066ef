//! What happened after an admitted check: the other half of a decision.
//!
//! Front ends fill it from an HTTP answer or from the caller's report. Must not interpret it.

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
    /// The answer's headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The amount the caller reports, for policies priced by report.
    pub cost: Option<i64>,
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
}
