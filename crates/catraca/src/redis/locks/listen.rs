//! Hearing what became free: one subscription to one channel, made anew whenever it breaks.
//!
//! In a cluster every server hears what is published on any. What was missed while nobody listened
//! is made up for by telling everybody to look. Must not keep a subscription to a server that is
//! no longer the one in charge.

use std::time::Duration;

use catraca_core::lock::Mark;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, PushKind, RedisResult, Value};
use tokio::sync::broadcast;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{sleep, timeout};

use super::Whereabouts;
use crate::locks::Freed;
use crate::redis::greet::Manners;
use crate::redis::url::Server;

/// Until it is tried again.
const PAUSE: Duration = Duration::from_millis(100);
/// How often a silent subscription is looked after.
const IDLE: Duration = Duration::from_secs(1);
/// What a server may take to answer.
const ANSWER: Duration = Duration::from_millis(500);

/// Who listens.
pub(super) struct Listener {
    pub manners: Manners,
    pub whereabouts: Whereabouts,
    pub channel: Vec<u8>,
    pub freed: broadcast::Sender<Freed>,
}

impl Listener {
    /// Listens for as long as it is let.
    pub async fn listen(self) {
        loop {
            if let Some(server) = (self.whereabouts)()
                && let Ok(Ok((connection, pushes))) = timeout(ANSWER, self.open(&server)).await
            {
                // Whatever was told before now may have been missed.
                let _ = self.freed.send(Freed::Any);
                self.hear(&server, connection, pushes).await;
            }
            sleep(PAUSE).await;
        }
    }

    async fn open(
        &self,
        server: &Server,
    ) -> RedisResult<(MultiplexedConnection, UnboundedReceiver<PushInfo>)> {
        let (sender, pushes) = mpsc::unbounded_channel();
        let config = AsyncConnectionConfig::new().set_push_sender(sender);
        let mut connection = self.manners.open(server, config, ProtocolVersion::RESP3).await?;
        connection.subscribe(&self.channel).await?;
        Ok((connection, pushes))
    }

    /// Returns when the subscription is over, or of no use any more.
    async fn hear(
        &self,
        server: &Server,
        mut connection: MultiplexedConnection,
        mut pushes: UnboundedReceiver<PushInfo>,
    ) {
        loop {
            match timeout(IDLE, pushes.recv()).await {
                Ok(Some(push)) if push.kind == PushKind::Message => self.tell(&push.data),
                Ok(Some(push)) if push.kind == PushKind::Disconnection => return,
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(_) => {
                    let ping = redis::cmd("PING");
                    let answer = timeout(ANSWER, ping.exec_async(&mut connection)).await;
                    let elsewhere = (self.whereabouts)().is_some_and(|now| now != *server);
                    if elsewhere || !matches!(answer, Ok(Ok(()))) {
                        return;
                    }
                }
            }
        }
    }

    /// A message is the channel and marks, one after the other.
    fn tell(&self, data: &[Value]) {
        let Some(Value::BulkString(marks)) = data.get(1) else { return };
        let (marks, _) = marks.as_chunks::<16>();
        for mark in marks {
            // Nobody may be waiting.
            let _ = self.freed.send(Freed::Name(Mark(*mark)));
        }
    }
}
