//! Receives notices of freed lock names from all nodes, over a connection of its own (`LISTEN`).
//!
//! Where notifications do not arrive, waiters poll at an interval instead, and the channel is tried
//! again and again. A server that refuses the subscription is an error. A pooler in transaction
//! mode accepts it and drops the notifications: that is how it works, so it is a limitation.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use catraca_core::lock::NameDigest;
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_postgres::{AsyncMessage, Client};

use super::super::connection::connect;
use super::super::database_url::DatabaseUrl;
use super::super::failure::PostgresFailure;
use super::super::primary::{self, PrimaryConnection};
use crate::locks::FreedNotice;

/// The channel of the notifications.
pub(super) const CHANNEL: &str = "catraca_locks";
/// How many notices a slow receiver may leave unread; beyond that it lags and must check all names.
const UNREAD_MAX: usize = 1_024;
/// How often waiters check all names while notifications do not work.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long the test message to ourselves may take.
const TEST_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to poll before the channel is tried again after a failed test.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// The test message.
const HELLO: &str = "hello";

/// Sends notices to the waiters of this node.
pub(in super::super) type FreedSender = broadcast::Sender<FreedNotice>;

/// A channel without receivers yet.
pub(in super::super) fn freed_channel() -> FreedSender {
    broadcast::channel(UNREAD_MAX).0
}

/// The payload of a notification: the digest of the name in hexadecimal.
pub(super) fn to_payload(digest: NameDigest) -> String {
    digest.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The notice for a payload. Anything but a digest means that any name may be free.
fn from_payload(payload: &str) -> FreedNotice {
    let byte = |at: usize| u8::from_str_radix(payload.get(2 * at..2 * at + 2)?, 16).ok();
    let mut bytes = [0; 16];
    for (index, target) in bytes.iter_mut().enumerate() {
        let Some(byte) = byte(index) else { return FreedNotice::Any };
        *target = byte;
    }
    FreedNotice::Name(NameDigest(bytes))
}

/// Receives notices of freed names, or says why there are none.
pub(super) struct PostgresListener {
    pub url: DatabaseUrl,
    pub freed: FreedSender,
    pub connect_timeout: Duration,
    pub report: Arc<ListenReport>,
}

/// Why notifications do not arrive, while they do not: one of the two, or none.
#[derive(Debug, Default)]
pub(in super::super) struct ListenReport {
    pub error: ArcSwapOption<String>,
    /// The server accepts the subscription and the test message, and does not deliver it.
    pub limitation: ArcSwapOption<String>,
}

impl ListenReport {
    fn on_arrival(&self) {
        self.error.store(None);
        self.limitation.store(None);
    }

    fn on_silence(&self, why: Silence) {
        let (error, limitation) = match why {
            Silence::Failed(why) => (
                Some(format!(
                    "notifications of freed names do not arrive: {why}; callers that wait for a \
                     lock ask again every {POLL_INTERVAL:?} instead"
                )),
                None,
            ),
            Silence::Dropped => (
                None,
                Some(format!(
                    "PostgreSQL is behind a pooler that passes no notifications on, such as \
                     PgBouncer in transaction mode: callers that wait for a lock ask again every \
                     {POLL_INTERVAL:?}; to wake them at once, name the server itself in the URL, \
                     or let the pooler keep sessions"
                )),
            ),
        };
        self.error.store(error.map(Arc::new));
        self.limitation.store(limitation.map(Arc::new));
    }
}

/// Why no notifications arrive.
enum Silence {
    /// The subscription and the test message were accepted, and the message did not arrive.
    Dropped,
    Failed(String),
}

/// Receives notices until the task is aborted; polls between connections.
pub(super) async fn listen(listener: Arc<PostgresListener>) {
    let freed = &listener.freed;
    loop {
        let pause = match session(&listener).await {
            Ok(NotificationsWork) => POLL_INTERVAL,
            Err(why) => {
                listener.report.on_silence(why);
                RETRY_AFTER
            }
        };
        let until = Instant::now() + pause;
        while Instant::now() < until {
            // An error only means that there are no receivers.
            let _ = freed.send(FreedNotice::Any);
            sleep(POLL_INTERVAL).await;
        }
    }
}

/// The test message has arrived.
struct NotificationsWork;

/// One connection, until it breaks or the test fails; returns whether notifications worked, or why
/// not.
async fn session(listener: &PostgresListener) -> Result<NotificationsWork, Silence> {
    let PostgresListener { url, freed, connect_timeout, report } = listener;
    let connect_timeout = *connect_timeout;
    let failed = |failure: PostgresFailure| Silence::Failed(failure.to_string());
    let connected = primary::connect(url, connect_timeout).await;
    let PrimaryConnection { client, mut connection, timeline } = connected.map_err(failed)?;
    // An old primary that is still reachable publishes nothing that concerns the new one.
    let replaced = url.wait_replaced(timeline);
    tokio::pin!(replaced);
    let client = Arc::new(client);
    let test_deadline = Instant::now() + TEST_TIMEOUT;
    let subscriber = Arc::clone(&client);
    let url = url.clone();
    // In a task, because the connection must be polled below for the client to work.
    let mut test = tokio::spawn(async move {
        listen_and_test(&subscriber, &url, connect_timeout).await.map_err(|error| error.to_string())
    });
    let mut works = None;
    // Why the connection ended; none if the time for the test is over.
    let ended = loop {
        let is_tested = works.is_some();
        let next = tokio::select! {
            next = poll_fn(|cx| connection.poll_message(cx)) => next,
            () = &mut replaced => break Some("another server is the primary".to_owned()),
            () = sleep_until(test_deadline), if !is_tested => break None,
        };
        match next {
            Some(Ok(AsyncMessage::Notification(message))) if message.payload() == HELLO => {
                works = Some(NotificationsWork);
                report.on_arrival();
                // Earlier notifications may have been missed.
                let _ = freed.send(FreedNotice::Any);
            }
            Some(Ok(AsyncMessage::Notification(message))) => {
                let _ = freed.send(from_payload(message.payload()));
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => break Some(PostgresFailure::Server(error).to_string()),
            None => break Some("the connection was closed".to_owned()),
        }
    };
    let tested = if test.is_finished() { (&mut test).await.ok() } else { None };
    test.abort();
    drop(client);
    works.ok_or_else(|| match (tested, ended) {
        (Some(Err(refused)), _) => Silence::Failed(refused),
        (_, Some(why)) => Silence::Failed(why),
        (Some(Ok(())), None) => Silence::Dropped,
        (None, None) => Silence::Failed(format!("no answer within {TEST_TIMEOUT:?}")),
    })
}

/// Subscribes, and sends the test message over another connection: a pooler may deliver only what
/// is sent over the subscribed one. If anything fails, the message does not arrive.
async fn listen_and_test(
    client: &Client,
    url: &DatabaseUrl,
    connect_timeout: Duration,
) -> Result<(), PostgresFailure> {
    let subscribed = client.batch_execute(&format!("LISTEN {CHANNEL}")).await;
    subscribed.map_err(PostgresFailure::Server)?;
    let (other, driver, _) = connect(url, connect_timeout).await?;
    let driver = tokio::spawn(driver);
    let sent = other.batch_execute(&format!("NOTIFY {CHANNEL}, '{HELLO}'")).await;
    driver.abort();
    sent.map_err(PostgresFailure::Server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_round_trip_and_any_other_payload_means_any_name() {
        let digest = NameDigest([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 251, 252, 253, 254, 255]);
        assert_eq!(from_payload(&to_payload(digest)), FreedNotice::Name(digest));
        for other in ["", "zz", "00", "été"] {
            assert_eq!(from_payload(other), FreedNotice::Any, "{other}");
        }
    }
}
