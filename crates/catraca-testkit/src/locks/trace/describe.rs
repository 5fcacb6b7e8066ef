//! Replies as text, in the form in which the lock model answers.

use catraca_core::lock::reply::{Conflict, Lease, LeaseState};

/// Reports a reply of another kind than its operation.
pub(super) fn wrong_reply() -> String {
    "a reply of another kind than the operation".to_owned()
}

/// A lease, in the text form of the model.
pub(super) fn describe_lease(view: &Lease) -> String {
    let until = match view.state {
        LeaseState::Confirmed => "ever".to_owned(),
        _ if view.expires_at.is_forever() => "ever".to_owned(),
        _ => view.expires_at.micros().to_string(),
    };
    format!("#{} v{} {}..{until}", view.fence, view.version, view.acquired_at.micros())
}

/// A conflict, in the text form of the model.
pub(super) fn describe_conflict(conflict: &Conflict) -> String {
    let free = conflict.free_at.micros();
    format!("conflict {} {} free {free}", conflict.taken, describe_lease(&conflict.holder))
}
