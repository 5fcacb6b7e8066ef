//! The Redis store: every batch is one call of the script.
//!
//! A batch whose call was interrupted may have been applied, so it is not sent again. It is sent a
//! second time only if the server says that it did not run: the script is not loaded, the keys are
//! on another server, or the call came after its deadline.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use catraca_core::batch::{Batch, Reply};
use redis::RedisResult;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use super::by_group::{batch_group, merge, split};
use super::cluster::ClusterConnections;
use super::connect_error::ConnectError;
use super::connection::{ConnectionTimeouts, FixedServer, LiveConnection, RedisConnection};
use super::decode::decode_reply;
use super::handshake::ConnectSettings;
use super::hash_slots;
use super::lock_store::ServerLookup;
use super::options::RedisOptions;
use super::script::{SCRIPT, run_script};
use super::script_args::ScriptArgs;
use super::sentinel::Sentinels;
use super::url::{RedisUrl, ServerDiscovery};
use crate::store::{Reconnection, SharedStore, StoreError, StoreFuture, StoreStatus, When};

/// Counters and blocks in Redis, which several nodes share.
pub struct RedisStore {
    redacted_url: String,
    settings: ConnectSettings,
    pub(super) topology: RedisTopology,
    /// The Sentinels that report the primary, if any.
    sentinels: Option<Arc<Sentinels>>,
    prefix: Vec<u8>,
    pub(super) deadline: Duration,
    /// A setting of a server that may lose blocks, as the last status call found it.
    pub(super) config_warning: ArcSwapOption<String>,
    /// Limits the calls in flight.
    calls: Semaphore,
}

/// How the servers are reached.
pub(super) enum RedisTopology {
    /// One server, or the primary that Sentinels report.
    Single(RedisConnection),
    Cluster(ClusterConnections),
}

impl RedisStore {
    /// Connects. Fails if the server cannot be reached, is a replica or evicts keys. Afterwards a
    /// lost connection is made again in the background.
    pub async fn connect(url: &str, options: RedisOptions) -> Result<Self, ConnectError> {
        Self::connect_with(url, options, SCRIPT).await
    }

    /// Connects as [`Self::connect`] does, but loads another script.
    pub(super) async fn connect_with(
        url: &str,
        options: RedisOptions,
        script: &'static str,
    ) -> Result<Self, ConnectError> {
        let url = RedisUrl::parse(url)?;
        check_prefix(&options.prefix)?;
        let settings = ConnectSettings::new(&url, &options, script)?;
        let redacted_url = url.to_string();
        let (topology, sentinels) =
            connect_topology(url, settings.clone(), ConnectionTimeouts::new(&options)).await?;
        Ok(Self {
            topology,
            sentinels,
            settings,
            redacted_url,
            prefix: options.prefix.into_bytes(),
            deadline: options.deadline,
            config_warning: ArcSwapOption::empty(),
            calls: Semaphore::new(options.in_flight_max),
        })
    }

    /// The URL without user and password.
    pub fn redacted_url(&self) -> &str {
        &self.redacted_url
    }

    /// Why the store cannot be used now, if so.
    pub fn unavailable_reason(&self) -> Option<String> {
        match &self.topology {
            RedisTopology::Single(connection) => connection.down_reason(),
            RedisTopology::Cluster(cluster) => cluster.down_reason(),
        }
    }

    pub(super) fn connect_settings(&self) -> &ConnectSettings {
        &self.settings
    }

    /// Finds the server that is connected now; in a cluster one of its primaries.
    pub(super) fn server_lookup(&self) -> ServerLookup {
        match &self.topology {
            RedisTopology::Single(connection) => {
                let handle = connection.handle();
                Arc::new(move || handle.server())
            }
            RedisTopology::Cluster(cluster) => cluster.server_lookup(),
        }
    }

    /// The prefix of all keys of a group; in a cluster with the hash tag that decides their slot.
    pub(super) fn prefix(&self, group: u16) -> Cow<'_, [u8]> {
        match &self.topology {
            RedisTopology::Single(_) => Cow::Borrowed(&self.prefix),
            RedisTopology::Cluster(_) => {
                [&self.prefix, hash_slots::hash_tag(group).as_bytes()].concat().into()
            }
        }
    }

    /// Makes one call within the store's deadline. The flag given to `call` says that a server of
    /// the cluster redirected it and that `ASKING` must be sent first.
    pub(super) async fn round_trip<T, F: Future<Output = RedisResult<T>>>(
        &self,
        group: u16,
        call: impl Fn(LiveConnection, bool) -> F,
    ) -> Result<T, StoreError> {
        self.round_trip_until(Instant::now() + self.deadline, group, call).await
    }

    async fn round_trip_until<T, F: Future<Output = RedisResult<T>>>(
        &self,
        until: Instant,
        group: u16,
        call: impl Fn(LiveConnection, bool) -> F,
    ) -> Result<T, StoreError> {
        let _permit = self.try_begin_call()?;
        let answer = match &self.topology {
            RedisTopology::Single(connection) => {
                connection.round_trip(until, |live| call(live, false)).await
            }
            RedisTopology::Cluster(cluster) => {
                cluster.round_trip(hash_slots::slot_of_group(group), until, call).await
            }
        };
        answer.map_err(StoreError::from)
    }

    /// Applies a batch whose keys are all in one group.
    async fn apply_one(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        let group = batch_group(batch);
        let prefix = self.prefix(group);
        let args = ScriptArgs::new(&prefix, batch);
        let until = Instant::now() + self.deadline;
        let call = |live, asking| run_script(live, asking, &args, when);
        let answer = self.round_trip_until(until, group, call).await;
        if matches!(answer, Err(StoreError::Unavailable { .. })) && is_operator_act(batch) {
            // Although the connection is lost, the call may still reach the server, which applies
            // it until its deadline. Wait for that, so that the caller does not get an error about
            // an act that happens afterwards.
            sleep_until(until).await;
        }
        decode_reply(batch, &answer?)
    }

    fn try_begin_call(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        let full = |_| StoreError::unavailable("too many calls to Redis are in flight");
        self.calls.try_acquire().map_err(full)
    }
}

impl SharedStore for RedisStore {
    fn apply<'a>(&'a self, batch: &'a Batch, when: When) -> StoreFuture<'a, Reply> {
        Box::pin(async move {
            let parts = if self.is_sharded() { split(batch) } else { None };
            let Some(parts) = parts else { return self.apply_one(batch, when).await };
            let mut replies = Vec::with_capacity(parts.len());
            for (rows, part) in parts {
                replies.push((rows, self.apply_one(&part, when).await?));
            }
            merge(replies).ok_or_else(StoreError::mismatched_reply)
        })
    }

    fn is_sharded(&self) -> bool {
        matches!(self.topology, RedisTopology::Cluster(_))
    }

    fn config_warning(&self) -> Option<String> {
        self.config_warning.load().as_deref().cloned()
    }

    fn background_error(&self) -> Option<String> {
        match &self.topology {
            RedisTopology::Single(_) => {
                let sentinels = self.sentinels.as_ref()?;
                sentinels.listen_error.load().as_deref().cloned()
            }
            RedisTopology::Cluster(cluster) => cluster.refresh_error(),
        }
    }

    fn wait_reconnected(&self) -> Reconnection {
        match &self.topology {
            RedisTopology::Single(connection) => Box::pin(connection.handle().wait_for_reconnect()),
            // Several connections: one that is back says nothing about the others.
            RedisTopology::Cluster(_) => Box::pin(std::future::pending()),
        }
    }

    fn status(&self) -> StoreFuture<'_, StoreStatus> {
        Box::pin(async move { self.query_status().await })
    }

    fn publish_change(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.increment_changes().await })
    }

    fn bind_records<'a>(&'a self, records: &'a str) -> StoreFuture<'a, String> {
        Box::pin(async move { self.claim_records(records).await })
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("url", &self.redacted_url).finish_non_exhaustive()
    }
}

async fn connect_topology(
    url: RedisUrl,
    settings: ConnectSettings,
    timeouts: ConnectionTimeouts,
) -> Result<(RedisTopology, Option<Arc<Sentinels>>), ConnectError> {
    let mut servers = url.servers;
    match url.discovery {
        ServerDiscovery::Single => {
            let none = || ConnectError::Url("it names no server".to_owned());
            let server = servers.pop().ok_or_else(none)?;
            let fixed = FixedServer { settings, server };
            let connection = RedisConnection::connect(fixed, timeouts).await?;
            Ok((RedisTopology::Single(connection), None))
        }
        ServerDiscovery::SentinelPrimary(name) => {
            let listen_error = ArcSwapOption::empty();
            let sentinels = Arc::new(Sentinels { settings, servers, name, listen_error });
            let connection = RedisConnection::connect(sentinels.clone(), timeouts).await?;
            let listening = tokio::spawn(sentinels.clone().listen(connection.handle()));
            let connection = connection.with_task(listening.abort_handle());
            Ok((RedisTopology::Single(connection), Some(sentinels)))
        }
        ServerDiscovery::Cluster => {
            let cluster = ClusterConnections::connect(settings, servers, timeouts).await?;
            Ok((RedisTopology::Cluster(cluster), None))
        }
    }
}

/// Whether an operator gave the order and expects to learn whether it was carried out.
fn is_operator_act(batch: &Batch) -> bool {
    matches!(batch, Batch::Block(_) | Batch::Unblock(_) | Batch::Reset(_))
}

/// Refuses a prefix with `{`: Redis Cluster would take it for the hash tag of all keys.
fn check_prefix(prefix: &str) -> Result<(), ConnectError> {
    if prefix.len() <= 64 && prefix.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'{') {
        return Ok(());
    }
    Err(ConnectError::Url(format!(
        "the prefix {prefix:?} must be at most 64 visible ASCII characters without {{"
    )))
}
