//! Who is primary, as Sentinels know it, and hearing at once when that changes.
//!
//! A line is made to whom a Sentinel names. A line that breaks, or whose server has become a
//! replica, is made anew after asking again; a primary that was replaced while it still answers is
//! left when a Sentinel says so. Must not believe a Sentinel about a server that says otherwise.

use std::sync::Arc;
use std::time::Duration;

use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, PushKind};
use redis::{RedisError, RedisResult, Value};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{sleep, timeout};

use super::error::ConnectError;
use super::failure::code;
use super::greet::{Greeted, Manners, refusal};
use super::link::{Handle, Source};
use super::url::Server;

/// What one Sentinel, or the server that it names, may take to answer.
const ANSWER: Duration = Duration::from_millis(300);
const SWITCH: &str = "+switch-master";
/// Until another Sentinel is asked to tell of changes.
const PAUSE: Duration = Duration::from_millis(200);

/// The Sentinels of one primary.
pub(super) struct Sentinels {
    pub manners: Manners,
    pub servers: Vec<Server>,
    pub name: String,
}

impl Source for Arc<Sentinels> {
    async fn connect(&self) -> Result<Greeted, ConnectError> {
        let mut failed = ConnectError::Url("no Sentinel is named".to_owned());
        for sentinel in &self.servers {
            match self.follow(sentinel).await {
                Ok(greeted) => return Ok(greeted),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl Sentinels {
    async fn follow(&self, sentinel: &Server) -> Result<Greeted, ConnectError> {
        let primary = in_time(sentinel, self.ask(sentinel)).await?;
        in_time(&primary, self.manners.greet(&primary)).await
    }

    /// Whom this Sentinel takes for the primary.
    async fn ask(&self, sentinel: &Server) -> Result<Server, ConnectError> {
        let opened = self.open(sentinel, AsyncConnectionConfig::new()).await;
        let mut connection = opened.map_err(|error| refused(sentinel, &error))?;
        let ask = redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name).to_owned();
        let told = ask.query_async::<Option<(String, u16)>>(&mut connection).await;
        match told.map_err(|error| refused(sentinel, &error))? {
            Some((host, port)) => Ok(Server::Tcp(host, port)),
            None => Err(ConnectError::Refused {
                server: sentinel.to_string(),
                reason: format!("this Sentinel watches no primary named {:?}", self.name),
            }),
        }
    }

    async fn open(
        &self,
        sentinel: &Server,
        config: AsyncConnectionConfig,
    ) -> RedisResult<redis::aio::MultiplexedConnection> {
        self.manners.to_sentinels().open(sentinel, config, ProtocolVersion::RESP3).await
    }

    /// Listens to one Sentinel after the other, for as long as each answers.
    pub async fn listen(self: Arc<Self>, handle: Handle) {
        for sentinel in self.servers.iter().cycle() {
            if let Ok((_connection, pushes)) = self.subscribe(sentinel).await {
                self.compare(sentinel, &handle).await;
                self.hear(pushes, &handle).await;
            }
            sleep(PAUSE).await;
        }
    }

    async fn subscribe(
        &self,
        sentinel: &Server,
    ) -> RedisResult<(redis::aio::MultiplexedConnection, UnboundedReceiver<PushInfo>)> {
        let (sender, pushes) = mpsc::unbounded_channel();
        let config = AsyncConnectionConfig::new().set_push_sender(sender);
        let mut connection = self.open(sentinel, config).await?;
        connection.subscribe(SWITCH).await?;
        Ok((connection, pushes))
    }

    /// A change may have been missed while nobody listened.
    async fn compare(&self, sentinel: &Server, handle: &Handle) {
        if let Ok(primary) = in_time(sentinel, self.ask(sentinel)).await
            && handle.server().is_some_and(|server| server != primary)
        {
            handle.renew("Sentinel names another primary");
        }
    }

    /// Returns when the Sentinel has gone.
    async fn hear(&self, mut pushes: UnboundedReceiver<PushInfo>, handle: &Handle) {
        while let Some(push) = pushes.recv().await {
            if push.kind == PushKind::Disconnection {
                return;
            }
            if push.kind == PushKind::Message && self.is_ours(&push.data) {
                handle.renew("Sentinel has named another primary");
            }
        }
    }

    /// A message is the channel and `name old-host old-port new-host new-port`.
    fn is_ours(&self, data: &[Value]) -> bool {
        let Some(Value::BulkString(text)) = data.get(1) else { return false };
        let text = String::from_utf8_lossy(text);
        text.split_whitespace().next() == Some(&self.name)
    }
}

/// Whose password is wrong must be said: the URL has one for the servers and one for Sentinels.
fn refused(sentinel: &Server, error: &RedisError) -> ConnectError {
    match code(error) {
        Some(code @ ("NOAUTH" | "WRONGPASS" | "NOPERM")) => ConnectError::Refused {
            server: sentinel.to_string(),
            reason: format!(
                "{code}, this Sentinel wants a user and password of its own; write them as \
                 sentinel_user and sentinel_password behind the ? of the URL, or in \
                 sentinel_password_file"
            ),
        },
        _ => refusal(sentinel, error),
    }
}

async fn in_time<T>(
    server: &Server,
    asked: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    timeout(ANSWER, asked).await.unwrap_or_else(|_| {
        let reason = format!("no answer within {} ms", ANSWER.as_millis());
        Err(ConnectError::Unreachable { server: server.to_string(), reason })
    })
}
