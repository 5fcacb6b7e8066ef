//! The live feed: denials, blocks and catalog changes, each as a name and a JSON object.
//!
//! Bounded: a subscriber that reads too slowly misses events, gets their number, and has to
//! subscribe again. Without subscribers an event costs one look, and no private value is sent. A
//! subscriber of one namespace gets the events of that namespace, and no others.

use std::collections::BTreeMap;
use std::sync::Arc;

use catraca::event::{BlockEvent, SubjectKey};
use catraca::{Event, Time};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};

/// Events that a subscriber may lag behind.
const LAG_MAX: usize = 1_024;
/// The most subscribers at once.
pub const LISTENERS_MAX: usize = 64;
/// The most subscribers of one namespace at once, so that others find a place.
pub const NAMESPACE_LISTENERS_MAX: usize = 16;

/// Broadcasts events to the subscribers.
pub struct Feed {
    sender: Sender<FeedEvent>,
    /// How many subscribers each namespace has.
    by_namespace: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// An event of the feed. Cheap to clone: each subscriber gets one.
#[derive(Clone, Debug)]
pub struct FeedEvent {
    /// The name of its kind.
    pub name: &'static str,
    /// The namespace in which it happened; absent if it concerns all of them.
    pub namespace: Option<Arc<str>>,
    /// A JSON object.
    pub data: Arc<str>,
}

impl Default for Feed {
    fn default() -> Self {
        Self { sender: broadcast::channel(LAG_MAX).0, by_namespace: Arc::default() }
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
        if let Some((name, data)) = describe(event) {
            debug_assert!(EVENT_NAMES.contains(&name), "`catraca events --only` accepts it");
            // The last subscriber may have just disconnected.
            let namespace = data["namespace"].as_str().map(Arc::from);
            let _ = self.sender.send(FeedEvent { name, namespace, data: data.to_string().into() });
        }
    }

    /// The number of subscribers.
    pub fn subscriber_count(&self) -> usize {
        self.sender.receiver_count()
    }

    /// Subscribes to the events from now on, of one namespace or of all; none when
    /// `LISTENERS_MAX` are subscribed, or `NAMESPACE_LISTENERS_MAX` of the namespace.
    pub fn subscribe(&self, namespace: Option<&str>) -> Option<Subscription> {
        if self.subscriber_count() >= LISTENERS_MAX {
            return None;
        }
        let place = match namespace {
            Some(namespace) => Some(self.take_place(namespace)?),
            None => None,
        };
        Some(Subscription { receiver: self.sender.subscribe(), place })
    }

    fn take_place(&self, namespace: &str) -> Option<NamespacePlace> {
        let mut counts = self.by_namespace.lock();
        let count = counts.entry(namespace.to_owned()).or_default();
        if *count >= NAMESPACE_LISTENERS_MAX {
            return None;
        }
        *count += 1;
        let by_namespace = Arc::clone(&self.by_namespace);
        Some(NamespacePlace { namespace: namespace.to_owned(), by_namespace })
    }
}

/// A subscription to the feed.
pub struct Subscription {
    receiver: Receiver<FeedEvent>,
    /// The place of a subscriber of one namespace.
    place: Option<NamespacePlace>,
}

/// One of the places of a namespace, until it is dropped.
struct NamespacePlace {
    namespace: String,
    by_namespace: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Drop for NamespacePlace {
    fn drop(&mut self) {
        let mut counts = self.by_namespace.lock();
        if let Some(count) = counts.get_mut(&self.namespace) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.namespace);
            }
        }
    }
}

impl Subscription {
    /// The next event that the subscriber may see.
    pub async fn recv(&mut self) -> Result<FeedEvent, RecvError> {
        loop {
            let event = self.receiver.recv().await?;
            let Some(place) = &self.place else { return Ok(event) };
            if event.namespace.as_deref() == Some(place.namespace.as_str()) {
                return Ok(event);
            }
        }
    }

    /// Whether it is for one namespace.
    pub fn is_bound(&self) -> bool {
        self.place.is_some()
    }
}

/// The names of all events of the feed. `missed` says that a listener was too slow.
pub const EVENT_NAMES: [&str; 9] =
    ["blocked", "catalog", "denied", "low_water", "missed", "owed", "released", "reset", "storm"];

/// The name and the data of an event; none for events that the feed does not carry, such as allowed
/// checks, which are too many.
fn describe(event: &Event<'_>) -> Option<(&'static str, Value)> {
    let described = match event {
        Event::Decided { decision, .. } if decision.allowed => return None,
        Event::Decided { namespace, gate, decision, .. } => {
            let reason = decision.reason.as_str();
            let policy = decision.policy.as_deref();
            let at = decision.at.to_rfc3339();
            (
                "denied",
                json!({ "at": at, "namespace": namespace, "gate": gate, "reason": reason,
                "policy": policy }),
            )
        }
        Event::Blocked { at, block: event } => {
            let BlockEvent { subject, block, .. } = &**event;
            let until = end_or_null(block.until);
            let reason = block.note.reason.as_deref();
            let origin = catraca::json::origin_name(block.origin);
            (
                "blocked",
                json!({ "at": at.to_rfc3339(), "namespace": subject.namespace,
                "policy": subject.policy, "subject": subject_parts(&subject.parts),
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
                "subject": subject_parts(&debt.subject.parts),
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
    Some(described)
}

fn subject_parts(parts: &[(String, String)]) -> BTreeMap<&str, &str> {
    parts.iter().map(|(name, value)| (&**name, &**value)).collect()
}

/// The end of a block as RFC 3339; `None` if it has no end.
fn end_or_null(at: Time) -> Option<String> {
    (!at.is_forever()).then(|| at.to_rfc3339())
}

/// An operator's act on a key.
fn key_event(at: Time, subject: &SubjectKey) -> Value {
    json!({ "at": at.to_rfc3339(), "namespace": subject.namespace, "policy": subject.policy,
        "subject": subject_parts(&subject.parts) })
}
