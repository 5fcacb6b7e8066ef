//! How a denial appears in HTTP, by its reason: one table, which all front ends read. A reason of
//! core that it does not name does not compile.

use catraca_core::decision::Reason;
use http::StatusCode;

/// How denials with one reason appear in HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DenialKind {
    /// The status; `None` means the status of the ban rule that denied, or else 429.
    pub status: Option<StatusCode>,
    /// The problem type of the IANA registry.
    pub problem_type: &'static str,
}

/// The problem type of most denials.
pub(super) const QUOTA_EXCEEDED: &str =
    "https://iana.org/assignments/http-problem-types#quota-exceeded";
const ABNORMAL_USAGE: &str =
    "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";
const REDUCED_CAPACITY: &str =
    "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

impl DenialKind {
    /// The kind of denials with this reason.
    ///
    /// ```
    /// use catraca::Reason;
    /// use catraca::http_response::DenialKind;
    /// use http::StatusCode;
    ///
    /// assert_eq!(DenialKind::of(Reason::Blocklisted).status, Some(StatusCode::FORBIDDEN));
    /// assert_eq!(DenialKind::of(Reason::OverLimit).status, None);
    /// ```
    pub const fn of(reason: Reason) -> Self {
        let (status, problem_type) = match reason {
            // The first two never deny.
            Reason::Ok | Reason::Allowlisted | Reason::OverLimit | Reason::TooCostly => {
                (None, QUOTA_EXCEEDED)
            }
            Reason::Blocked => (None, ABNORMAL_USAGE),
            Reason::Blocklisted => (Some(StatusCode::FORBIDDEN), QUOTA_EXCEEDED),
            Reason::Missing => (Some(StatusCode::BAD_REQUEST), QUOTA_EXCEEDED),
            Reason::Unavailable => (Some(StatusCode::SERVICE_UNAVAILABLE), REDUCED_CAPACITY),
            _ => panic!("a reason without a status"),
        };
        Self { status, problem_type }
    }
}

const _: () = {
    let mut index = 0;
    while index < Reason::ALL.len() {
        let _ = DenialKind::of(Reason::ALL[index]);
        index += 1;
    }
};
