//! The Redis store: every batch is one call of the script.
//!
//! A batch whose call was interrupted may have been applied, so it is not sent again. It is sent a
//! second time only if the server says that it did not run.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use catraca_core::batch::{Batch, Reply};
use catraca_core::digest::Key;
use parking_lot::Mutex;
use redis::RedisResult;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, sleep_until};

use super::by_group::{batch_group, split_by_group};
use super::cluster::ClusterConnections;
use super::connect_error::ConnectError;
use super::connection::{ConnectionTimeouts, FixedServer, LiveConnection, RedisConnection};
use super::decode::decode_reply;
use super::handshake::{ConnectSettings, ServerInfo};
use super::hash_slots;
use super::lock_store::ServerLookup;
use super::options::{RedisOptions, check_prefix};
use super::script::{SCRIPT, run_script};
use super::script_args::ScriptArgs;
use super::sentinel::Sentinels;
use super::url::{RedisUrl, ServerDiscovery};
use crate::store::{
    NodeMessage, NodeReply, PrimaryId, PrimaryReports, Reconnection, RulePage, RuleWriteMode,
    SharedStore, StampedRule, StoreError, StoreFuture, StoreStatus, When, merge,
};

/// How long a call about locks waits for keys that are being moved to another server, beyond its
/// deadline: no node can grant them in the meantime, so an error would not help the caller.
const MOVE_PATIENCE: Duration = Duration::from_secs(1);
/// The pause before such a call is made again.
const MOVE_PAUSE: Duration = Duration::from_millis(2);

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
    /// Why the change counter of a cluster cannot be read, if so.
    pub(super) unread_changes: ArcSwapOption<String>,
    /// The change counter, as it was last read.
    pub(super) last_changes: AtomicU64,
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
        Self::connect_with(url, options, SCRIPT, None).await
    }

    /// Connects as [`Self::connect`] does, but loads another script. `sentinels` are those of
    /// another store of the same URL, which need not be asked twice.
    pub(super) async fn connect_with(
        url: &str,
        options: RedisOptions,
        script: &'static str,
        sentinels: Option<Arc<Sentinels>>,
    ) -> Result<Self, ConnectError> {
        let url = RedisUrl::parse(url)?;
        check_prefix(&options.prefix)?;
        let settings = ConnectSettings::new(&url, &options, script)?;
        let redacted_url = url.to_string();
        let timeouts = ConnectionTimeouts::new(&options);
        let connected = connect_topology(url, settings.clone(), timeouts, sentinels).await;
        let (topology, sentinels) = connected.map_err(|error| error.with_url(&redacted_url))?;
        Ok(Self {
            topology,
            sentinels,
            settings,
            redacted_url,
            prefix: options.prefix.into_bytes(),
            deadline: options.deadline,
            config_warning: ArcSwapOption::empty(),
            unread_changes: ArcSwapOption::empty(),
            last_changes: AtomicU64::new(0),
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

    /// The Sentinels that report the primary, if any.
    pub(super) fn sentinels(&self) -> Option<&Arc<Sentinels>> {
        self.sentinels.as_ref()
    }

    /// What is known about the only server, or the primary that Sentinels report.
    fn server_info(&self) -> Option<Arc<ServerInfo>> {
        match &self.topology {
            RedisTopology::Single(connection) => connection.server_info(),
            RedisTopology::Cluster(_) => None,
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

    /// The servers of a cluster from which slots may have been moved to others without a loss.
    pub(super) fn unbroken_servers(&self) -> Vec<Arc<ServerInfo>> {
        match &self.topology {
            RedisTopology::Single(_) => Vec::new(),
            RedisTopology::Cluster(cluster) => cluster.unbroken_servers(),
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

    /// Makes one call as [`Self::round_trip`] does, and waits for keys that are being moved: until
    /// then no server has run the call.
    pub(super) async fn round_trip_after_move<T, F: Future<Output = RedisResult<T>>>(
        &self,
        group: u16,
        call: impl Fn(LiveConnection, bool) -> F,
    ) -> Result<T, StoreError> {
        let give_up = Instant::now() + MOVE_PATIENCE;
        loop {
            match self.round_trip(group, &call).await {
                Err(StoreError::Moving { .. }) if Instant::now() < give_up => {
                    sleep(MOVE_PAUSE).await;
                }
                answer => return answer,
            }
        }
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
    /// Also returns whether the server that answered may have been replaced by then: the connection
    /// may be to another one already.
    async fn apply_one(&self, batch: &Batch, when: When) -> Result<(Reply, bool), StoreError> {
        let group = batch_group(batch);
        let prefix = self.prefix(group);
        let args = ScriptArgs::new(&prefix, batch);
        let until = Instant::now() + self.deadline;
        let server: Mutex<Option<Arc<ServerInfo>>> = Mutex::default();
        let call = |live: LiveConnection, asking| {
            *server.lock() = Some(Arc::clone(&live.server_info));
            run_script(live, asking, &args, when)
        };
        let answer = self.round_trip_until(until, group, call).await;
        if matches!(answer, Err(StoreError::Unavailable { .. })) && is_operator_act(batch) {
            // Although the connection is lost, the call may still reach the server, which applies
            // it until its deadline. Wait for that, so that the caller does not get an error about
            // an act that happens afterwards.
            sleep_until(until).await;
        }
        let reply = decode_reply(batch, &answer?)?;
        let is_doubtful = server.lock().as_ref().is_some_and(|server| server.is_doubtful());
        Ok((reply, is_doubtful))
    }

    fn try_begin_call(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        let full = |_| StoreError::unavailable("too many calls to Redis are in flight");
        self.calls.try_acquire().map_err(full)
    }
}

impl SharedStore for RedisStore {
    fn apply<'a>(&'a self, batch: &'a Batch, when: When) -> StoreFuture<'a, Reply> {
        Box::pin(async move { Ok(self.apply_with_doubt(batch, when).await?.0) })
    }

    fn apply_with_doubt<'a>(
        &'a self,
        batch: &'a Batch,
        when: When,
    ) -> StoreFuture<'a, (Reply, bool)> {
        Box::pin(async move {
            let parts = if self.is_sharded() { split_by_group(batch) } else { None };
            let Some(parts) = parts else { return self.apply_one(batch, when).await };
            let mut replies = Vec::with_capacity(parts.len());
            for (rows, part) in parts {
                // No Sentinels watch a cluster.
                let reply = self.apply_one(&part, when).await.map(|(reply, _)| reply);
                let is_first = replies.is_empty();
                let reply =
                    reply.map_err(|error| if is_first { error } else { error.after_other_parts() });
                replies.push((rows, reply?));
            }
            let reply = merge(replies).ok_or_else(StoreError::mismatched_reply)?;
            Ok((reply, false))
        })
    }

    fn is_sharded(&self) -> bool {
        matches!(self.topology, RedisTopology::Cluster(_))
    }

    fn primary_of(&self, key: Key) -> Option<PrimaryId> {
        match &self.topology {
            RedisTopology::Single(_) => Some(PrimaryId::default()),
            RedisTopology::Cluster(cluster) => cluster.primary_of_group(key.group()),
        }
    }

    fn primary_name(&self, primary: PrimaryId) -> Option<String> {
        match &self.topology {
            RedisTopology::Single(_) => None,
            RedisTopology::Cluster(cluster) => cluster.primary_name(primary),
        }
    }

    fn config_warning(&self) -> Option<String> {
        self.config_warning.load().as_deref().cloned()
    }

    fn background_error(&self) -> Option<String> {
        match &self.topology {
            RedisTopology::Single(_) => self.sentinels.as_ref()?.silent_sentinels(),
            RedisTopology::Cluster(cluster) => cluster.refresh_error().or(self.changes_error()),
        }
    }

    fn doubt(&self) -> Option<String> {
        let sentinels = self.sentinels.as_ref()?;
        let server = self.server_info().filter(|server| server.is_doubtful())?;
        Some(sentinels.describe_doubt(&server))
    }

    fn config_notice(&self) -> Option<String> {
        if let RedisTopology::Cluster(cluster) = &self.topology {
            return cluster.config_notice();
        }
        let server = self.server_info()?;
        self.sentinels.as_ref()?.config_notice(&server)
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

    fn primary_statuses(&self) -> PrimaryReports<'_> {
        Box::pin(async move { self.query_primaries().await })
    }

    fn publish_change(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.increment_changes().await })
    }

    fn bind_records<'a>(&'a self, records: &'a str) -> StoreFuture<'a, String> {
        Box::pin(async move { self.claim_records(records).await })
    }

    fn exchange<'a>(&'a self, message: &'a NodeMessage<'a>) -> StoreFuture<'a, NodeReply> {
        Box::pin(async move { self.exchange_notices(message).await })
    }

    fn trim_notices(&self, keep: u64) -> StoreFuture<'_, Vec<Vec<u8>>> {
        Box::pin(async move { self.trim_to(keep).await })
    }

    fn write_rules<'a>(
        &'a self,
        rules: &'a [StampedRule],
        mode: RuleWriteMode,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.put_rules(rules, mode).await })
    }

    fn read_rules(&self, from: u64) -> StoreFuture<'_, RulePage> {
        Box::pin(async move { self.scan_rules(from).await })
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
    sentinels: Option<Arc<Sentinels>>,
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
            let is_watched = sentinels.is_some();
            let sentinels =
                sentinels.unwrap_or_else(|| Arc::new(Sentinels::new(settings, &servers, name)));
            let mut connection = RedisConnection::start(sentinels.clone(), timeouts);
            sentinels.look_after(connection.handle());
            if !is_watched {
                connection = connection.with_task(Sentinels::start_watch(&sentinels));
            }
            connection.wait_until_up().await?;
            Ok((RedisTopology::Single(connection), Some(sentinels)))
        }
        ServerDiscovery::Cluster => {
            let cluster = ClusterConnections::connect(settings, servers, timeouts).await?;
            Ok((RedisTopology::Cluster(cluster), None))
        }
    }
}

/// Whether an operator waits for the result.
fn is_operator_act(batch: &Batch) -> bool {
    matches!(batch, Batch::Block(_) | Batch::Unblock(_) | Batch::Reset(_))
}
