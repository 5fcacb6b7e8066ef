//! Finds the primary through Sentinels, and reconnects as soon as they announce another one.
//!
//! When the connection breaks, or its server has become a replica, the Sentinels are asked again. A
//! primary that was replaced but still answers is left when a Sentinel announces the new one. The
//! handshake checks the role of the server: what a Sentinel reports may be out of date.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, PushKind};
use redis::{RedisError, RedisResult, Value};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{sleep, timeout};

use super::connect_error::ConnectError;
use super::connection::{ConnectionHandle, ServerConnector};
use super::failure::error_code;
use super::handshake::{ConnectSettings, ReadyConnection, to_connect_error};
use super::url::RedisAddress;

/// How long one Sentinel, or the server that it reports, may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(300);
/// The channel on which a Sentinel announces a new primary.
const SWITCH_CHANNEL: &str = "+switch-master";
/// The pause before subscribing to the next Sentinel.
const PAUSE: Duration = Duration::from_millis(200);

/// The Sentinels of one primary.
pub(super) struct Sentinels {
    pub settings: ConnectSettings,
    pub servers: Vec<RedisAddress>,
    pub name: String,
    /// Why no Sentinel announces a new primary to this node, if so.
    pub listen_error: ArcSwapOption<String>,
}

impl ServerConnector for Arc<Sentinels> {
    async fn connect(&self) -> Result<ReadyConnection, ConnectError> {
        let mut failed = ConnectError::Url("it names no Sentinel".to_owned());
        for sentinel in &self.servers {
            match self.connect_via(sentinel).await {
                Ok(connected) => return Ok(connected),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl Sentinels {
    /// Connects to the primary that one Sentinel reports.
    async fn connect_via(&self, sentinel: &RedisAddress) -> Result<ReadyConnection, ConnectError> {
        let primary = with_timeout(sentinel, self.query_primary(sentinel)).await?;
        with_timeout(&primary, self.settings.connect_checked(&primary)).await
    }

    /// The primary's address, as one Sentinel reports it.
    async fn query_primary(&self, sentinel: &RedisAddress) -> Result<RedisAddress, ConnectError> {
        let opened = self.open(sentinel, AsyncConnectionConfig::new()).await;
        let mut connection = opened.map_err(|error| to_sentinel_error(sentinel, &error))?;
        let ask = redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name).to_owned();
        let answer = ask.query_async::<Option<(String, u16)>>(&mut connection).await;
        match answer.map_err(|error| to_sentinel_error(sentinel, &error))? {
            Some((host, port)) => Ok(RedisAddress::Tcp(host, port)),
            None => Err(ConnectError::Refused {
                server: sentinel.to_string(),
                reason: format!("this Sentinel watches no primary named {:?}", self.name),
            }),
        }
    }

    async fn open(
        &self,
        sentinel: &RedisAddress,
        config: AsyncConnectionConfig,
    ) -> RedisResult<redis::aio::MultiplexedConnection> {
        // RESP3, because announcements arrive as pushes.
        self.settings.for_sentinels().open(sentinel, config, ProtocolVersion::RESP3).await
    }

    /// Subscribes to one Sentinel after the other, each until its connection breaks.
    pub async fn listen(self: Arc<Self>, handle: ConnectionHandle) {
        for sentinel in self.servers.iter().cycle() {
            match self.subscribe(sentinel).await {
                // Dropping the connection would end the subscription.
                Ok((_connection, pushes)) => {
                    self.listen_error.store(None);
                    self.compare_primary(sentinel, &handle).await;
                    self.receive(pushes, &handle).await;
                }
                Err(error) => {
                    let error = to_sentinel_error(sentinel, &error);
                    self.listen_error.store(Some(Arc::new(format!(
                        "no Sentinel announces a new primary to this node, so it notices one only \
                         when calls fail: {error}"
                    ))));
                }
            }
            sleep(PAUSE).await;
        }
    }

    async fn subscribe(
        &self,
        sentinel: &RedisAddress,
    ) -> RedisResult<(redis::aio::MultiplexedConnection, UnboundedReceiver<PushInfo>)> {
        let (sender, pushes) = mpsc::unbounded_channel();
        let config = AsyncConnectionConfig::new().set_push_sender(sender);
        let mut connection = self.open(sentinel, config).await?;
        connection.subscribe(SWITCH_CHANNEL).await?;
        Ok((connection, pushes))
    }

    /// Reconnects if the Sentinel reports another primary: an announcement may have been missed
    /// before the subscription.
    async fn compare_primary(&self, sentinel: &RedisAddress, handle: &ConnectionHandle) {
        if let Ok(primary) = with_timeout(sentinel, self.query_primary(sentinel)).await
            && handle.server().is_some_and(|server| server != primary)
        {
            handle.reconnect("Sentinel reports another primary");
        }
    }

    /// Handles announcements until the connection to the Sentinel breaks.
    async fn receive(&self, mut pushes: UnboundedReceiver<PushInfo>, handle: &ConnectionHandle) {
        while let Some(push) = pushes.recv().await {
            if push.kind == PushKind::Disconnection {
                return;
            }
            if push.kind == PushKind::Message && self.is_about_our_primary(&push.data) {
                handle.reconnect("Sentinel announced another primary");
            }
        }
    }

    /// Whether an announcement is about our primary. Its second part is `name old-host old-port
    /// new-host new-port`; a Sentinel may watch several primaries.
    fn is_about_our_primary(&self, data: &[Value]) -> bool {
        let Some(Value::BulkString(text)) = data.get(1) else { return false };
        let text = String::from_utf8_lossy(text);
        text.split_whitespace().next() == Some(&self.name)
    }
}

/// An authentication error says that the Sentinel's password is meant: the URL has one for the
/// servers and one for the Sentinels.
fn to_sentinel_error(sentinel: &RedisAddress, error: &RedisError) -> ConnectError {
    match error_code(error) {
        Some(code @ ("NOAUTH" | "WRONGPASS" | "NOPERM")) => ConnectError::Refused {
            server: sentinel.to_string(),
            reason: format!(
                "{code}, this Sentinel requires its own user and password; write them as \
                 sentinel_user and sentinel_password behind the ? of the URL, or in \
                 sentinel_password_file"
            ),
        },
        _ => to_connect_error(sentinel, error),
    }
}

async fn with_timeout<T>(
    server: &RedisAddress,
    call: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    timeout(ANSWER_TIMEOUT, call).await.unwrap_or_else(|_| {
        let reason = format!("no answer within {} ms", ANSWER_TIMEOUT.as_millis());
        Err(ConnectError::Unreachable { server: server.to_string(), reason })
    })
}
