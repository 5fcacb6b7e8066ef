//! What happened after an admitted check: the other half of a decision.
//!
//! Front ends fill it from an HTTP answer or from the caller's report. Must not interpret it.

/// What happened next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The HTTP status, or any number the caller maps to one.
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

    /// The seconds of a `Retry-After` header, if one can be read.
    pub fn retry_after_secs(&self) -> Option<i64> {
        let (_, value) = self.headers.iter().find(|(name, _)| name == "retry-after")?;
        value.trim().parse().ok().filter(|seconds| *seconds > 0)
    }
}
