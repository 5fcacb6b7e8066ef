//! Hearing of names that became free, on whichever node: a connection of its own that listens.
//!
//! Where nothing can be heard, such as behind a pooler that gives connections away between
//! transactions, whoever waits is told to look now and then. Must not stop to try.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use catraca_core::lock::Mark;
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::{AsyncMessage, Client};

use super::super::link::connect;
use super::super::place::Place;
use crate::locks::Freed;

/// Where names are told.
pub(super) const CHANNEL: &str = "catraca_locks";
/// What waits for a listener that is slow; then it is told to look at everything.
const HEARD_MAX: usize = 1_024;
/// How often whoever waits is told to look where nothing can be heard.
const BLIND: Duration = Duration::from_millis(250);
/// How long a first word to ourselves may take.
const TRIAL: Duration = Duration::from_secs(2);
/// How long it is left alone after that failed.
const DEAF: Duration = Duration::from_secs(30);
/// What is said to ourselves.
const HELLO: &str = "hello";

/// Those who want to know.
pub(in super::super) type Ears = broadcast::Sender<Freed>;

/// Nobody yet.
pub(in super::super) fn ears() -> Ears {
    broadcast::channel(HEARD_MAX).0
}

/// A name as it is told.
pub(super) fn text(mark: Mark) -> String {
    mark.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn told(payload: &str) -> Freed {
    let byte = |at: usize| u8::from_str_radix(payload.get(2 * at..2 * at + 2)?, 16).ok();
    let mut bytes = [0; 16];
    for (at, place) in bytes.iter_mut().enumerate() {
        let Some(byte) = byte(at) else { return Freed::Any };
        *place = byte;
    }
    Freed::Name(Mark(bytes))
}

/// Listens for ever; while it cannot, tells everybody to look now and then.
pub(super) async fn listen(place: Place, ears: Ears, patience: Duration) {
    loop {
        let pause = match session(&place, &ears, patience).await {
            Some(Heard) => BLIND,
            None => DEAF,
        };
        let until = Instant::now() + pause;
        while Instant::now() < until {
            // Nobody may be listening, which is as well.
            let _ = ears.send(Freed::Any);
            sleep(BLIND).await;
        }
    }
}

/// That something could be heard.
struct Heard;

/// One connection from its begin to its end; says whether it heard anything.
async fn session(place: &Place, ears: &Ears, patience: Duration) -> Option<Heard> {
    let connecting = place.config.connect(place.tls.connector.clone());
    let (client, mut connection) = timeout(patience, connecting).await.ok()?.ok()?;
    let (client, hello) = (Arc::new(client), Instant::now() + TRIAL);
    let (greeter, place) = (Arc::clone(&client), place.clone());
    let greeting = tokio::spawn(async move { greet(&greeter, &place, patience).await });
    let mut heard = None;
    loop {
        let next = poll_fn(|cx| connection.poll_message(cx));
        let next = match heard {
            Some(Heard) => next.await,
            None => match timeout_at(hello, next).await {
                Ok(next) => next,
                Err(_) => break,
            },
        };
        match next {
            Some(Ok(AsyncMessage::Notification(said))) if said.payload() == HELLO => {
                heard = Some(Heard);
                // What was told before is not known.
                let _ = ears.send(Freed::Any);
            }
            Some(Ok(AsyncMessage::Notification(said))) => {
                let _ = ears.send(told(said.payload()));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => break,
        }
    }
    greeting.abort();
    drop(client);
    heard
}

/// Says something to ourselves over another connection: a pooler may carry what is said over the
/// one that listens, and nothing else. What fails here is not heard.
async fn greet(client: &Client, place: &Place, patience: Duration) {
    if client.batch_execute(&format!("LISTEN {CHANNEL}")).await.is_err() {
        return;
    }
    let Ok((other, driver)) = connect(place, patience).await else { return };
    let driver = tokio::spawn(driver);
    let _ = other.batch_execute(&format!("NOTIFY {CHANNEL}, '{HELLO}'")).await;
    driver.abort();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_told_and_understood_and_anything_else_is_a_reason_to_look() {
        let mark = Mark([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 251, 252, 253, 254, 255]);
        assert_eq!(told(&text(mark)), Freed::Name(mark));
        for other in ["", "zz", "00", "été"] {
            assert_eq!(told(other), Freed::Any, "{other}");
        }
    }
}
