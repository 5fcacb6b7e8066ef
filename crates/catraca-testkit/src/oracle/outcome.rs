//! What happened after an admitted check, and the few conditions on it that the oracle can judge.
//!
//! It must not read the condition language of the catalog: the generator hands over the same
//! condition twice,
//! once as text for the catalog and once as one of these values.

/// What an admitted check led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Status of the answer, if there was one.
    pub status: Option<i64>,
    /// The number `reject_id` of its body.
    pub reject_id: Option<i64>,
    /// The bytes that its body is filled up to; 0 leaves it as it is.
    pub body_bytes: usize,
    /// The reported amount.
    pub cost: Option<i64>,
    /// Its `Retry-After`, in seconds.
    pub retry_after: Option<i64>,
}

/// The largest body that rules read, in bytes.
pub const BODY_BYTES_MAX: usize = 32;

/// When a ban rule holds.
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
    /// Whether it is true; a missing field makes it false, and a body that is too large has none.
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
