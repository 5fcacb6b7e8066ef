//! The live feed: denials, blocks and catalog changes, each as a name and a JSON object.
//!
//! Bounded: a subscriber that reads too slowly misses events, gets their number, and has to
//! subscribe again. Without subscribers an event costs one look, and no private value is sent. A
//! subscriber of one namespace gets the events of that namespace, and no others, and no other
//! namespace can make it lag.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use catraca::event::{BlockEvent, SubjectKey};
use catraca::{Event, Time};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};

/// Events that a subscriber may lag behind: those of all namespaces for one that gets all of them,
/// and those of its own for one of a namespace.
pub const LAG_MAX: usize = 1_024;
/// The most subscribers at once.
pub const LISTENERS_MAX: usize = 64;
/// The most subscribers of one namespace at once, so that others find a place.
pub const NAMESPACE_LISTENERS_MAX: usize = 16;

/// Broadcasts events to the subscribers. Each namespace with subscribers of its own has a channel
/// of its own, so that no other namespace can make them lag.
pub struct Feed {
    /// To the subscribers of all namespaces.
    all: Sender<FeedEvent>,
    channels: Arc<NamespaceChannels>,
}

/// The channels of the namespaces that have subscribers.
#[derive(Default)]
struct NamespaceChannels {
    by_namespace: Mutex<BTreeMap<String, NamespaceChannel>>,
    /// The subscribers of all of them. Read for every denial, without a lock.
    subscribers: AtomicUsize,
}

struct NamespaceChannel {
    sender: Sender<FeedEvent>,
    subscribers: usize,
}

/// An event of the feed. Cheap to clone: each subscriber gets one.
#[derive(Clone, Debug)]
pub struct FeedEvent {
    /// The name of its kind.
    pub name: &'static str,
    /// A JSON object.
    pub data: Arc<str>,
}

impl Default for Feed {
    fn default() -> Self {
        Self { all: broadcast::channel(LAG_MAX).0, channels: Arc::default() }
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
            let namespace = data["namespace"].as_str();
            let event = FeedEvent { name, data: data.to_string().into() };
            if let Some(namespace) = namespace {
                self.channels.send(namespace, &event);
            }
            // The last subscriber may have just disconnected.
            let _ = self.all.send(event);
        }
    }

    /// The number of subscribers.
    pub fn subscriber_count(&self) -> usize {
        self.all.receiver_count() + self.channels.subscribers.load(Ordering::Relaxed)
    }

    /// Subscribes to the events from now on, of one namespace or of all; none when
    /// `LISTENERS_MAX` are subscribed, or `NAMESPACE_LISTENERS_MAX` of the namespace. A subscriber
    /// of one namespace gets no events that concern all of them.
    pub fn subscribe(&self, namespace: Option<&str>) -> Option<Subscription> {
        if self.subscriber_count() >= LISTENERS_MAX {
            return None;
        }
        let Some(namespace) = namespace else {
            return Some(Subscription { receiver: self.all.subscribe(), _place: None });
        };
        let receiver = self.channels.subscribe(namespace)?;
        let channels = Arc::clone(&self.channels);
        let place = NamespacePlace { namespace: namespace.to_owned(), channels };
        Some(Subscription { receiver, _place: Some(place) })
    }
}

impl NamespaceChannels {
    fn send(&self, namespace: &str, event: &FeedEvent) {
        if self.subscribers.load(Ordering::Relaxed) == 0 {
            return;
        }
        if let Some(channel) = self.by_namespace.lock().get(namespace) {
            let _ = channel.sender.send(event.clone());
        }
    }

    /// Takes one of the places of a namespace, if one is free.
    fn subscribe(&self, namespace: &str) -> Option<Receiver<FeedEvent>> {
        let mut channels = self.by_namespace.lock();
        let channel = channels.entry(namespace.to_owned()).or_insert_with(|| NamespaceChannel {
            sender: broadcast::channel(LAG_MAX).0,
            subscribers: 0,
        });
        if channel.subscribers >= NAMESPACE_LISTENERS_MAX {
            return None;
        }
        channel.subscribers += 1;
        self.subscribers.fetch_add(1, Ordering::Relaxed);
        Some(channel.sender.subscribe())
    }

    fn unsubscribe(&self, namespace: &str) {
        let mut channels = self.by_namespace.lock();
        self.subscribers.fetch_sub(1, Ordering::Relaxed);
        let Some(channel) = channels.get_mut(namespace) else { return };
        channel.subscribers -= 1;
        if channel.subscribers == 0 {
            channels.remove(namespace);
        }
    }
}

/// A subscription to the feed.
pub struct Subscription {
    receiver: Receiver<FeedEvent>,
    /// Frees the place of a subscriber of one namespace.
    _place: Option<NamespacePlace>,
}

/// One of the places of a namespace, until it is dropped.
struct NamespacePlace {
    namespace: String,
    channels: Arc<NamespaceChannels>,
}

impl Drop for NamespacePlace {
    fn drop(&mut self) {
        self.channels.unsubscribe(&self.namespace);
    }
}

impl Subscription {
    /// The next event that the subscriber may see.
    pub async fn recv(&mut self) -> Result<FeedEvent, RecvError> {
        self.receiver.recv().await
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

#[cfg(test)]
mod tests {
    use catraca::core::digest::Key;

    use super::*;

    /// A release in a namespace, of a subject of this number.
    fn release(feed: &Feed, namespace: &str, number: usize) {
        let subject = SubjectKey {
            key: Key::from_bytes([1; 16]),
            namespace: namespace.to_owned(),
            policy: "login".to_owned(),
            parts: vec![("customer".to_owned(), number.to_string())],
        };
        feed.publish(&Event::Unblocked { at: Time::ZERO, subject });
    }

    /// Regression: one channel for all namespaces, filtered for each subscriber, so that a flood in
    /// one namespace disconnected the subscribers of all others.
    #[test]
    fn a_flood_in_one_namespace_makes_no_subscriber_of_another_lag() {
        let feed = Feed::default();
        let mut shop = feed.subscribe(Some("shop")).unwrap();
        let mut hostile = feed.subscribe(Some("hostile")).unwrap();
        let mut all = feed.subscribe(None).unwrap();
        release(&feed, "shop", 0);
        (0..100 * LAG_MAX).for_each(|number| release(&feed, "hostile", number));
        release(&feed, "shop", 1);
        for number in ["0", "1"] {
            let event = shop.receiver.try_recv().unwrap();
            assert!(event.data.contains(&format!(r#""customer":"{number}""#)), "{}", event.data);
        }
        assert!(shop.receiver.try_recv().is_err(), "events of another namespace");
        assert!(hostile.receiver.try_recv().is_err_and(|error| error.to_string().contains("lag")));
        assert!(all.receiver.try_recv().is_err_and(|error| error.to_string().contains("lag")));
    }

    #[test]
    fn places_are_bounded_for_each_namespace_and_freed() {
        let feed = Feed::default();
        let subscribe = || feed.subscribe(Some("hostile"));
        let held: Vec<Subscription> = std::iter::from_fn(subscribe).collect();
        assert_eq!(held.len(), NAMESPACE_LISTENERS_MAX);
        assert!(feed.subscribe(Some("shop")).is_some(), "a place of another namespace");
        drop(held);
        assert_eq!(feed.subscriber_count(), 0);
        assert!(feed.channels.by_namespace.lock().is_empty(), "channels are freed");
        assert!(subscribe().is_some());
    }
}
