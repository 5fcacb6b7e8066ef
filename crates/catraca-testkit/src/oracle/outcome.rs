//! The outcome of an admitted check, and the conditions on it that the oracle evaluates.
//!
//! The oracle does not parse the catalog's condition language: the generator produces each
//! condition twice, as text for the engine's catalog and as one of these values.

/// The outcome of an admitted check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The status of the response, if there was one.
    pub status: Option<i64>,
    /// The number `reject_id` of its body.
    pub reject_id: Option<i64>,
    /// The size to which the body is padded, in bytes; 0 for no padding.
    pub body_bytes: usize,
    /// The reported cost.
    pub cost: Option<i64>,
    /// Its `Retry-After`, in seconds.
    pub retry_after: Option<i64>,
}

/// The largest body that rules read, in bytes.
pub const BODY_BYTES_MAX: usize = 32;

/// The condition of a ban rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `status == n`
    Status(i64),
    /// `body.reject_id == n`
    Reject(i64),
    /// `status == n && body.reject_id == m`
    Both(i64, i64),
    /// `body_truncated || body.reject_id == n`
    TruncatedOr(i64),
}

impl Condition {
    /// Whether it is true. A missing field makes it false, and a body that is too large has no
    /// fields.
    pub fn holds(&self, outcome: &Outcome) -> bool {
        let truncated = outcome.body_bytes > BODY_BYTES_MAX;
        let rejected = |id| !truncated && outcome.reject_id == Some(id);
        match *self {
            Condition::Status(status) => outcome.status == Some(status),
            Condition::Reject(id) => rejected(id),
            Condition::Both(status, id) => outcome.status == Some(status) && rejected(id),
            Condition::TruncatedOr(id) => truncated || rejected(id),
        }
    }

    /// The same condition in the catalog's language.
    pub fn text(&self) -> String {
        match self {
            Condition::Status(status) => format!("status == {status}"),
            Condition::Reject(id) => format!("body.reject_id == {id}"),
            Condition::Both(status, id) => format!("status == {status} && body.reject_id == {id}"),
            Condition::TruncatedOr(id) => format!("body_truncated || body.reject_id == {id}"),
        }
    }
}
