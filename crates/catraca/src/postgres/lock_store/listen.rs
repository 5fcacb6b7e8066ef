//! Receives notices of freed lock names from all nodes, over a connection of its own (`LISTEN`).
//!
//! Where notifications do not arrive, as behind a pooler in transaction mode, waiters
//! poll at an interval instead. The channel is tried again and again.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use catraca_core::lock::NameDigest;
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::{AsyncMessage, Client};

use super::super::connection::connect;
use super::super::database_url::DatabaseUrl;
use super::super::failure::PostgresFailure;
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
    /// Why notifications do not arrive, while they do not.
    pub error: Arc<ArcSwapOption<String>>,
}

/// Receives notices until the task is aborted; polls between connections.
pub(super) async fn listen(listener: PostgresListener) {
    let freed = &listener.freed;
    loop {
        let pause = match session(&listener).await {
            Ok(NotificationsWork) => POLL_INTERVAL,
            Err(why) => {
                let text = format!(
                    "notifications of freed names do not arrive: {why}; callers that wait for a \
                     lock ask again every {POLL_INTERVAL:?} instead"
                );
                listener.error.store(Some(Arc::new(text)));
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
async fn session(listener: &PostgresListener) -> Result<NotificationsWork, String> {
    let PostgresListener { url, freed, connect_timeout, error } = listener;
    let connect_timeout = *connect_timeout;
    let connecting = timeout(connect_timeout, url.config.connect(url.tls.connector.clone()));
    let connected = connecting.await.map_err(|_| PostgresFailure::TimedOut(connect_timeout));
    let connected = connected.map_err(|failure| failure.to_string())?;
    let failed = |error| PostgresFailure::Server(error).to_string();
    let (client, mut connection) = connected.map_err(failed)?;
    let client = Arc::new(client);
    let test_deadline = Instant::now() + TEST_TIMEOUT;
    let subscriber = Arc::clone(&client);
    let url = url.clone();
    // In a task, because the connection must be polled below for the client to work.
    let mut test = tokio::spawn(async move {
        listen_and_test(&subscriber, &url, connect_timeout).await.map_err(|error| error.to_string())
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
                error.store(None);
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
    let refused = match test.is_finished() {
        true => (&mut test).await.ok().and_then(Result::err),
        false => None,
    };
    test.abort();
    drop(client);
    let missing = || {
        "the test message did not arrive, as behind a pooler in transaction mode; name the server \
         itself in the URL, or let the pooler keep sessions"
            .to_owned()
    };
    works.ok_or_else(|| refused.unwrap_or_else(missing))
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
    let (other, driver) = connect(url, connect_timeout).await?;
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
