//! The live feed of `GET /v1/events`: denials, blocks and catalog changes as server-sent events.
//!
//! Bounded: a subscriber that reads too slowly misses events, gets their number, and has to
//! subscribe again. Without subscribers an event costs one look, and no private value is sent.

use bytes::Bytes;
use catraca::event::SubjectKey;
use catraca::{Event, Time};
use serde_json::{Value, json};
use tokio::sync::broadcast::{self, Receiver, Sender};

use crate::http::bodies::record_bodies;

/// Events that a subscriber may lag behind.
const LAG_MAX: usize = 1_024;
/// The most subscribers at once.
pub const LISTENERS_MAX: usize = 64;

/// Broadcasts events to the subscribers.
pub struct Feed(Sender<Bytes>);

impl Default for Feed {
    fn default() -> Self {
        Self(broadcast::channel(LAG_MAX).0)
    }
}

impl Feed {
    /// Sends an event to the subscribers, if there are any.
    pub fn publish(&self, event: &Event<'_>) {
        // Allowed checks first: they are most events, and counting the subscribers takes a lock.
        if matches!(event, Event::Decided { decision, .. } if decision.allowed)
            || self.subscriber_count() == 0
        {
            return;
        }
        if let Some((name, data)) = sse_event(event) {
            // The last subscriber may have just disconnected.
            let _ = self.0.send(Bytes::from(format!("event: {name}\ndata: {data}\n\n")));
        }
    }

    /// The number of subscribers.
    pub fn subscriber_count(&self) -> usize {
        self.0.receiver_count()
    }

    /// Subscribes to all events from now on; none when `LISTENERS_MAX` are subscribed.
    pub fn subscribe(&self) -> Option<Receiver<Bytes>> {
        (self.subscriber_count() < LISTENERS_MAX).then(|| self.0.subscribe())
    }
}

/// The SSE name and data of an event; none for events that the feed does not carry, such as allowed
/// checks, which are too many.
fn sse_event(event: &Event<'_>) -> Option<(&'static str, Value)> {
    let sse = match event {
        Event::Decided { decision, .. } if decision.allowed => return None,
        Event::Decided { namespace, gate, decision } => {
            let reason = decision.reason.as_str();
            let policy = decision.policy.as_deref();
            let at = decision.at.to_rfc3339();
            (
                "denied",
                json!({ "at": at, "namespace": namespace, "gate": gate, "reason": reason,
                "policy": policy }),
            )
        }
        Event::Blocked { at, block } => {
            let until = record_bodies::end_or_null(block.until);
            let reason = block.note.reason.as_deref();
            let origin = catraca::json::origin_name(block.origin);
            (
                "blocked",
                json!({ "at": at.to_rfc3339(), "namespace": block.subject.namespace,
                "policy": block.subject.policy,
                "subject": record_bodies::subject_parts(&block.subject.parts),
                "until": until, "origin": origin, "reason": reason, "shadow": block.shadow }),
            )
        }
        Event::Unblocked { at, subject } => ("released", key_event(*at, subject)),
        Event::Reset { at, subject } => ("reset", key_event(*at, subject)),
        Event::PolicyReset { at, policy, .. } => (
            "reset",
            json!({ "at": at.to_rfc3339(), "namespace": null, "policy": &**policy,
                "subject": null }),
        ),
        Event::Debt { at, debt } => (
            "owed",
            json!({ "at": at.to_rfc3339(), "namespace": debt.subject.namespace,
                "policy": debt.subject.policy,
                "subject": record_bodies::subject_parts(&debt.subject.parts),
                "balance": debt.balance }),
        ),
        Event::LowWater { at, policy, remaining, limit } => (
            "low_water",
            json!({ "at": at.to_rfc3339(), "policy": &**policy,
                "remaining": remaining, "limit": limit }),
        ),
        Event::BanStorm { at, policy } => {
            ("storm", json!({ "at": at.to_rfc3339(), "policy": &**policy }))
        }
        Event::CatalogReloaded { at, revision, .. } => {
            ("catalog", json!({ "at": at.to_rfc3339(), "revision": &**revision }))
        }
        _ => return None,
    };
    Some(sse)
}

/// An operator's act on a key.
fn key_event(at: Time, subject: &SubjectKey) -> Value {
    json!({ "at": at.to_rfc3339(), "namespace": subject.namespace, "policy": subject.policy,
        "subject": record_bodies::subject_parts(&subject.parts) })
}
