//! Receives notices of freed lock names from all nodes, over a connection of its own (`LISTEN`).
//!
//! Where notifications do not arrive, as behind a pooler in transaction mode, waiters
//! poll at an interval instead. The channel is tried again and again.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use catraca_core::lock::NameDigest;
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::{AsyncMessage, Client};

use super::super::connection::connect;
use super::super::database_url::DatabaseUrl;
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

/// Receives notices until the task is aborted; polls between connections.
pub(super) async fn listen(url: DatabaseUrl, freed: FreedSender, connect_timeout: Duration) {
    loop {
        let pause = match session(&url, &freed, connect_timeout).await {
            Some(NotificationsWork) => POLL_INTERVAL,
            None => RETRY_AFTER,
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

/// One connection, until it breaks or the test fails; returns whether notifications worked.
async fn session(
    url: &DatabaseUrl,
    freed: &FreedSender,
    connect_timeout: Duration,
) -> Option<NotificationsWork> {
    let connecting = url.config.connect(url.tls.connector.clone());
    let (client, mut connection) = timeout(connect_timeout, connecting).await.ok()?.ok()?;
    let client = Arc::new(client);
    let test_deadline = Instant::now() + TEST_TIMEOUT;
    let listener = Arc::clone(&client);
    let url = url.clone();
    // In a task, because the connection must be polled below for the client to work.
    let test = tokio::spawn(async move {
        listen_and_test(&listener, &url, connect_timeout).await;
    });
    let mut works = None;
    loop {
        let next = poll_fn(|cx| connection.poll_message(cx));
        let next = match works {
            Some(NotificationsWork) => next.await,
            None => match timeout_at(test_deadline, next).await {
                Ok(next) => next,
                Err(_) => break,
            },
        };
        match next {
            Some(Ok(AsyncMessage::Notification(message))) if message.payload() == HELLO => {
                works = Some(NotificationsWork);
                // Earlier notifications may have been missed.
                let _ = freed.send(FreedNotice::Any);
            }
            Some(Ok(AsyncMessage::Notification(message))) => {
                let _ = freed.send(from_payload(message.payload()));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => break,
        }
    }
    test.abort();
    drop(client);
    works
}

/// Subscribes, and sends the test message over another connection: a pooler may deliver only what
/// is sent over the subscribed one. If anything fails, the message does not arrive.
async fn listen_and_test(client: &Client, url: &DatabaseUrl, connect_timeout: Duration) {
    if client.batch_execute(&format!("LISTEN {CHANNEL}")).await.is_err() {
        return;
    }
    let Ok((other, driver)) = connect(url, connect_timeout).await else { return };
    let driver = tokio::spawn(driver);
    let _ = other.batch_execute(&format!("NOTIFY {CHANNEL}, '{HELLO}'")).await;
    driver.abort();
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
