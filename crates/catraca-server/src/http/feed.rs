//! The live feed: what happens, told to whoever listens, as it happens.
//!
//! Bounded: whoever reads slower than things happen misses some, is told how many, and has to come
//! back. Must not cost a decision anything while nobody listens, nor carry a private value.

use bytes::Bytes;
use catraca::Event;
use serde_json::{Value, json};
use tokio::sync::broadcast::{self, Receiver, Sender};

use super::shown;

/// Events that a listener may be behind.
const BEHIND_MAX: usize = 1_024;
/// Listeners at once.
pub const LISTENERS_MAX: usize = 64;

/// Whoever listens.
pub struct Feed(Sender<Bytes>);

impl Default for Feed {
    fn default() -> Self {
        Self(broadcast::channel(BEHIND_MAX).0)
    }
}

impl Feed {
    /// Tells an event, if somebody listens.
    pub fn tell(&self, event: &Event<'_>) {
        // First what most events are, because the count of listeners is behind a lock.
        if matches!(event, Event::Decided { decision, .. } if decision.allowed)
            || self.listeners() == 0
        {
            return;
        }
        if let Some((name, data)) = told(event) {
            // Whoever listened may have just left.
            let _ = self.0.send(Bytes::from(format!("event: {name}\ndata: {data}\n\n")));
        }
    }

    /// How many listen.
    pub fn listeners(&self) -> usize {
        self.0.receiver_count()
    }

    /// Everything from now on; none if too many listen already.
    pub fn listen(&self) -> Option<Receiver<Bytes>> {
        (self.listeners() < LISTENERS_MAX).then(|| self.0.subscribe())
    }
}

/// An event by its name; checks that pass are too many to tell.
fn told(event: &Event<'_>) -> Option<(&'static str, Value)> {
    let told = match event {
        Event::Decided { decision, .. } if decision.allowed => return None,
        Event::Decided { namespace, gate, decision } => {
            let (reason, policy) = (decision.reason.as_str(), decision.policy.as_deref());
            let at = decision.at.to_rfc3339();
            (
                "denied",
                json!({ "at": at, "namespace": namespace, "gate": gate, "reason": reason,
                "policy": policy }),
            )
        }
        Event::Blocked(block) => {
            let (until, reason) = (shown::until(block.until), block.note.reason.as_deref());
            let origin = catraca::shape::origin(block.origin);
            (
                "blocked",
                json!({ "at": block.at.to_rfc3339(), "namespace": block.namespace,
                "policy": block.policy, "subject": shown::subject(&block.parts),
                "until": until, "origin": origin, "reason": reason, "shadow": block.shadow }),
            )
        }
        Event::Unblocked { at, namespace, policy, parts, .. } => (
            "released",
            json!({ "at": at.to_rfc3339(), "namespace": namespace,
                "policy": policy, "subject": shown::subject(parts) }),
        ),
        Event::Reset { at, namespace, policy, parts, .. } => (
            "reset",
            json!({ "at": at.to_rfc3339(), "namespace": namespace,
                "policy": policy, "subject": shown::subject(parts) }),
        ),
        Event::PolicyReset { at, policy, .. } => (
            "reset",
            json!({ "at": at.to_rfc3339(), "namespace": null, "policy": policy,
                "subject": null }),
        ),
        Event::Owed(owed) => (
            "owed",
            json!({ "at": owed.at.to_rfc3339(), "namespace": owed.namespace,
                "policy": owed.policy, "subject": shown::subject(&owed.parts),
                "balance": owed.balance }),
        ),
        Event::LowWater { at, policy, remaining, limit } => (
            "low_water",
            json!({ "at": at.to_rfc3339(), "policy": policy,
                "remaining": remaining, "limit": limit }),
        ),
        Event::Storm { at, policy } => {
            ("storm", json!({ "at": at.to_rfc3339(), "policy": policy }))
        }
        Event::Catalog { at, revision, .. } => {
            ("catalog", json!({ "at": at.to_rfc3339(), "revision": revision }))
        }
        _ => return None,
    };
    Some(told)
}
