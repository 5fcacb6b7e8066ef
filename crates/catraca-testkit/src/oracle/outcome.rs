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
    /// The reported amount.
    pub cost: Option<i64>,
    /// Its `Retry-After`, in seconds.
    pub retry_after: Option<i64>,
}

/// When a ban rule holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `status == n`
    Status(i64),
    /// `body.reject_id == n`
    Reject(i64),
    /// `status == n && body.reject_id == m`
    Both(i64, i64),
}

impl Condition {
    /// Whether it is true; a missing field makes it false.
    pub fn holds(&self, outcome: &Outcome) -> bool {
        match *self {
            Condition::Status(status) => outcome.status == Some(status),
            Condition::Reject(id) => outcome.reject_id == Some(id),
            Condition::Both(status, id) => {
                outcome.status == Some(status) && outcome.reject_id == Some(id)
            }
        }
    }

    /// The same condition in the catalog's language.
    pub fn text(&self) -> String {
        match self {
            Condition::Status(status) => format!("status == {status}"),
            Condition::Reject(id) => format!("body.reject_id == {id}"),
            Condition::Both(status, id) => format!("status == {status} && body.reject_id == {id}"),
        }
    }
}
