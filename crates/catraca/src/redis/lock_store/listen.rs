//! Receives notices of freed names: one subscription to one channel, renewed whenever it breaks.
//!
//! In a cluster every server receives the messages that are published on any of them. After each
//! subscription all waiters check again, because notices may have been missed before. A
//! subscription to a server that is not the connected one any more is dropped.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use catraca_core::lock::NameDigest;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, PushKind, RedisResult, Value};
use tokio::sync::broadcast;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{sleep, timeout};

use super::ServerLookup;
use crate::locks::FreedNotice;
use crate::redis::handshake::ConnectSettings;
use crate::redis::url::RedisAddress;

/// The pause before subscribing again.
const PAUSE: Duration = Duration::from_millis(250);
/// How often a subscription without messages is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a server may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// Forwards notices from Redis to the waiters of this node.
pub(super) struct RedisListener {
    pub settings: ConnectSettings,
    pub server_lookup: ServerLookup,
    pub channel: Vec<u8>,
    pub freed: broadcast::Sender<FreedNotice>,
    /// Why there is no subscription, while the server refuses it.
    pub error: Arc<ArcSwapOption<String>>,
}

impl RedisListener {
    /// Runs until the task is aborted.
    pub async fn run(self: Arc<Self>) {
        loop {
            // Without a connected server, the store reports the outage.
            if let Some(server) = (self.server_lookup)() {
                match timeout(ANSWER_TIMEOUT, self.subscribe(&server)).await {
                    Ok(Ok((connection, pushes))) => {
                        self.error.store(None);
                        // Notices before this moment may have been missed. An error only means
                        // that there are no receivers.
                        let _ = self.freed.send(FreedNotice::Any);
                        self.receive(&server, connection, pushes).await;
                    }
                    Ok(Err(error)) => self.report(&error.to_string()),
                    Err(_) => self.report(&format!("no answer within {ANSWER_TIMEOUT:?}")),
                }
            }
            // Without a subscription waiters check their names once in this pause.
            let _ = self.freed.send(FreedNotice::Any);
            sleep(PAUSE).await;
        }
    }

    fn report(&self, why: &str) {
        let text = format!(
            "the subscription to freed names failed: {why}; callers that wait for a lock ask again \
             every {PAUSE:?} instead; allow the channel `{}` and SUBSCRIBE to the user of the URL",
            String::from_utf8_lossy(&self.channel)
        );
        self.error.store(Some(Arc::new(text)));
    }

    async fn subscribe(
        &self,
        server: &RedisAddress,
    ) -> RedisResult<(MultiplexedConnection, UnboundedReceiver<PushInfo>)> {
        let (sender, pushes) = mpsc::unbounded_channel();
        let config = AsyncConnectionConfig::new().set_push_sender(sender);
        // RESP3, because notices arrive as pushes.
        let mut connection = self.settings.open(server, config, ProtocolVersion::RESP3).await?;
        connection.subscribe(&self.channel).await?;
        Ok((connection, pushes))
    }

    /// Forwards notices until the subscription breaks or another server is connected.
    async fn receive(
        &self,
        server: &RedisAddress,
        mut connection: MultiplexedConnection,
        mut pushes: UnboundedReceiver<PushInfo>,
    ) {
        loop {
            match timeout(CHECK_INTERVAL, pushes.recv()).await {
                Ok(Some(push)) if push.kind == PushKind::Message => self.forward(&push.data),
                Ok(Some(push)) if push.kind == PushKind::Disconnection => return,
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(_) => {
                    let ping = redis::cmd("PING");
                    let answer = timeout(ANSWER_TIMEOUT, ping.exec_async(&mut connection)).await;
                    let is_outdated = (self.server_lookup)().is_some_and(|now| now != *server);
                    if is_outdated || !matches!(answer, Ok(Ok(()))) {
                        return;
                    }
                }
            }
        }
    }

    /// A message is the channel and the digests of freed names, 16 bytes each.
    fn forward(&self, data: &[Value]) {
        let Some(Value::BulkString(digests)) = data.get(1) else { return };
        let (digests, _) = digests.as_chunks::<16>();
        for digest in digests {
            // An error only means that there are no receivers.
            let _ = self.freed.send(FreedNotice::Name(NameDigest(*digest)));
        }
    }
}
