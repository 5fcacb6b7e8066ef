//! The link to one Sentinel: asks it every heartbeat, and at once when any Sentinel announces
//! something about the primary.
//!
//! Each question has a deadline. A Sentinel that does not answer in time has no vote; its
//! connection is dropped and made again.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, PushKind, Value};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::connect_error::ConnectError;
use super::super::url::RedisAddress;
use super::report::{query_id, query_names, query_report};
use super::{Sentinels, to_sentinel_error};

/// How long a Sentinel may take to answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_millis(300);
/// How often a Sentinel is asked: as often as the store gets a heartbeat.
pub(super) const INTERVAL: Duration = Duration::from_millis(250);
/// Announcements after which all Sentinels are asked at once: a failover begins, ends or fails, or
/// a replica was promoted.
const CHANNELS: [&str; 6] = [
    "+try-failover",
    "+promoted-slave",
    "+switch-master",
    "+failover-end",
    "-failover-abort-no-good-slave",
    "-failover-abort-slave-timeout",
];

/// A subscribed connection to a Sentinel.
struct SentinelLink {
    connection: MultiplexedConnection,
    pushes: UnboundedReceiver<PushInfo>,
    id: String,
}

impl Sentinels {
    /// Asks one Sentinel again and again, until the task is aborted.
    pub(super) async fn follow(self: Arc<Self>, sentinel: RedisAddress) {
        let mut requests = self.requests.subscribe();
        loop {
            let tried = Instant::now();
            let error = match with_timeout(&sentinel, self.open_link(&sentinel)).await {
                Ok(link) => self.follow_link(&sentinel, link, &mut requests).await,
                Err(error) => error,
            };
            self.on_error(&sentinel, tried, error);
            tokio::select! {
                () = sleep_until(Instant::now() + INTERVAL) => {}
                _ = requests.changed() => {}
            }
        }
    }

    async fn open_link(&self, sentinel: &RedisAddress) -> Result<SentinelLink, ConnectError> {
        let refused = |error| to_sentinel_error(sentinel, &error);
        let (sender, pushes) = mpsc::unbounded_channel();
        let config = AsyncConnectionConfig::new().set_push_sender(sender);
        let settings = self.settings.for_sentinels();
        // RESP3, because announcements arrive as pushes.
        let opened = settings.open(sentinel, config, ProtocolVersion::RESP3).await;
        let mut connection = opened.map_err(refused)?;
        let id = query_id(&connection, sentinel).await.map_err(refused)?;
        connection.subscribe(&CHANNELS).await.map_err(refused)?;
        Ok(SentinelLink { connection, pushes, id })
    }

    /// Returns why the link ended.
    async fn follow_link(
        &self,
        sentinel: &RedisAddress,
        mut link: SentinelLink,
        requests: &mut watch::Receiver<u64>,
    ) -> ConnectError {
        loop {
            let asked = Instant::now();
            requests.mark_unchanged();
            match with_timeout(sentinel, self.ask(sentinel, &link)).await {
                Ok(report) => self.on_report(sentinel, asked, report),
                Err(error) => return error,
            }
            if !self.wait_for_reason(&mut link, requests, asked + INTERVAL).await {
                let reason = "the connection was closed".to_owned();
                return ConnectError::Unreachable { server: sentinel.to_string(), reason };
            }
        }
    }

    async fn ask(
        &self,
        sentinel: &RedisAddress,
        link: &SentinelLink,
    ) -> Result<super::report::SentinelReport, ConnectError> {
        let refused = |error| to_sentinel_error(sentinel, &error);
        let report = query_report(&link.connection, &link.id, &self.name).await.map_err(refused)?;
        let Some(report) = report else {
            let names = query_names(&link.connection).await.unwrap_or_default();
            return Err(self.unknown_name(sentinel, &names));
        };
        Ok(report)
    }

    /// Waits until the Sentinel must be asked again; false if its connection has broken.
    async fn wait_for_reason(
        &self,
        link: &mut SentinelLink,
        requests: &mut watch::Receiver<u64>,
        until: Instant,
    ) -> bool {
        loop {
            tokio::select! {
                () = sleep_until(until) => return true,
                _ = requests.changed() => return true,
                push = link.pushes.recv() => match push {
                    Some(push) if push.kind == PushKind::Message => {
                        if self.is_about_our_primary(&push.data) {
                            // Every link asks, this one included.
                            self.ask_all();
                            return true;
                        }
                    }
                    Some(push) if push.kind == PushKind::Disconnection => return false,
                    Some(_) => {}
                    None => return false,
                },
            }
        }
    }

    /// Whether an announcement is about our primary: a Sentinel may watch several. The name is one
    /// of its words.
    fn is_about_our_primary(&self, data: &[Value]) -> bool {
        let Some(Value::BulkString(text)) = data.get(1) else { return false };
        let text = String::from_utf8_lossy(text);
        text.split_whitespace().any(|word| word == self.name)
    }

    fn unknown_name(&self, sentinel: &RedisAddress, names: &[String]) -> ConnectError {
        let known = match names {
            [] => "it watches none".to_owned(),
            names => format!("it watches {}", names.join(", ")),
        };
        ConnectError::Refused {
            server: sentinel.to_string(),
            reason: format!(
                "this Sentinel watches no primary named {:?}, {known}; write the name of \
                 `sentinel monitor` behind the Sentinels of the URL",
                self.name
            ),
        }
    }
}

/// Limits how long a Sentinel, or the server that it names, may take to answer.
pub(super) async fn with_timeout<T>(
    server: &RedisAddress,
    call: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    timeout(ANSWER_TIMEOUT, call).await.unwrap_or_else(|_| {
        let reason = format!("no answer within {} ms", ANSWER_TIMEOUT.as_millis());
        Err(ConnectError::Unreachable { server: server.to_string(), reason })
    })
}
