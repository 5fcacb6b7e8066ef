//! Connections to all primaries of a Redis Cluster, and the map of their slots.
//!
//! All keys of a call are in one slot, and the call goes to the primary of that slot. A server that
//! does not have the slot any more redirects the call without running the script; the redirect is
//! followed once. While the keys of a slot are being moved, servers refuse calls about them without
//! running the script, and the call is sent again for half of its time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use super::connect_error::ConnectError;
use super::connection::{
    ConnectionTimeouts, FixedServer, LiveConnection, RedisConnection, ServerConnector,
};
use super::failure::{RoundTripError, error_code, is_moving};
use super::handshake::{ConnectSettings, ReadyConnection, ServerInfo};
use super::hash_slots::{SlotRange, query_slots, slot_of_group};
use super::lock_store::ServerLookup;
use super::primary_ids::{PrimaryChanges, PrimaryIds};
use super::refresh_timer::RefreshTimer;
use super::slot_map::{ClusterPrimary, SlotMap};
use super::url::RedisAddress;
use crate::store::{PrimaryId, StoreError};
use crate::supervise::supervise;

/// The pause before a call is sent again whose keys are being moved.
const MOVE_PAUSE: Duration = Duration::from_millis(2);
/// How many primaries that left are remembered.
const RETIRED_MAX: usize = 64;

/// Connections to all primaries, closed when this value is dropped.
pub(super) struct ClusterConnections {
    state: Arc<ClusterState>,
    task: AbortHandle,
}

struct ClusterState {
    settings: ConnectSettings,
    timeouts: ConnectionTimeouts,
    /// The servers of the URL: asked for the slot map when no known primary answers.
    seeds: Vec<RedisAddress>,
    map: ArcSwap<SlotMap>,
    ids: Mutex<PrimaryIds>,
    /// Primaries that gave all of their slots to others. Their keys are complete.
    retired: Mutex<Vec<Arc<ServerInfo>>>,
    refresh_timer: RefreshTimer,
    /// Why the map could not be read again, if so.
    refresh_error: ArcSwapOption<String>,
    full_coverage: Arc<FullCoverage>,
}

/// The servers that stop serving all keys when some slots have no server, or may do so.
#[derive(Default)]
struct FullCoverage(Mutex<BTreeMap<RedisAddress, Coverage>>);

/// What is known of `cluster-require-full-coverage` of a server.
enum Coverage {
    Full,
    /// Why it is not known.
    Unknown(String),
}

/// A server of the cluster. Its handshake also reads whether it requires full coverage.
struct ClusterServer {
    fixed: FixedServer,
    full_coverage: Arc<FullCoverage>,
}

impl ServerConnector for ClusterServer {
    async fn connect(&self) -> Result<ReadyConnection, ConnectError> {
        let mut ready = self.fixed.connect().await?;
        let mut ask = redis::cmd("CONFIG");
        ask.arg("GET").arg("cluster-require-full-coverage");
        // The user of the URL need not have the right to ask.
        let answer = ask.query_async::<Vec<String>>(&mut ready.connection).await;
        let coverage = match answer.as_deref() {
            Ok([_, value]) if value == "no" => None,
            Ok([_, value]) if value == "yes" => Some(Coverage::Full),
            Ok(_) => Some(Coverage::Unknown("it does not report the setting".to_owned())),
            Err(error) => Some(Coverage::Unknown(error.to_string())),
        };
        self.full_coverage.note(&self.fixed.server, coverage);
        Ok(ready)
    }

    fn target(&self) -> String {
        self.fixed.target()
    }
}

impl FullCoverage {
    fn note(&self, server: &RedisAddress, coverage: Option<Coverage>) {
        let mut servers = self.0.lock();
        match coverage {
            Some(coverage) => servers.insert(server.clone(), coverage),
            None => servers.remove(server),
        };
    }

    fn notice(&self, map: &SlotMap) -> Option<String> {
        let servers = self.0.lock();
        let mut used = servers.iter().filter(|(server, _)| map.connection_to(server).is_some());
        let (server, coverage) = used.next()?;
        if let Coverage::Unknown(why) = coverage {
            return Some(format!(
                "it is not known whether Redis at {server} requires full coverage, which makes the \
                 keys of all primaries unavailable with one: {why}; allow `CONFIG GET` to the user \
                 of the URL"
            ));
        }
        Some(format!(
            "Redis at {server} requires full coverage: if one primary is lost without a replica, \
             the keys of all primaries become unavailable; run `redis-cli -c CONFIG SET \
             cluster-require-full-coverage no` on every server and write the same in its \
             configuration file"
        ))
    }
}

impl Drop for ClusterConnections {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ClusterConnections {
    /// Connects to all primaries; fails if one of them is refused by the handshake.
    pub async fn connect(
        settings: ConnectSettings,
        seeds: Vec<RedisAddress>,
        timeouts: ConnectionTimeouts,
    ) -> Result<Self, ConnectError> {
        let state = Arc::new(ClusterState {
            settings,
            timeouts,
            seeds,
            map: ArcSwap::default(),
            ids: Mutex::default(),
            retired: Mutex::default(),
            refresh_timer: RefreshTimer::default(),
            refresh_error: ArcSwapOption::empty(),
            full_coverage: Arc::default(),
        });
        state.refresh().await?;
        for connection in state.map.load().connections() {
            connection.wait_until_up().await?;
        }
        let refreshed = Arc::clone(&state);
        let refresh = supervise("cluster refresh", move || Arc::clone(&refreshed).run());
        let task = tokio::spawn(refresh).abort_handle();
        Ok(Self { state, task })
    }

    /// Why some keys cannot be reached now, if so.
    pub fn down_reason(&self) -> Option<String> {
        let map = self.state.map.load();
        map.connections().find_map(|connection| connection.down_reason())
    }

    /// Why the slot map could not be read again, if so.
    pub fn refresh_error(&self) -> Option<String> {
        self.state.refresh_error.load().as_deref().cloned()
    }

    /// That a server requires full coverage, and the remedy.
    pub fn config_notice(&self) -> Option<String> {
        self.state.full_coverage.notice(&self.state.map.load())
    }

    /// Finds one of the connected primaries, the same one as long as it is connected.
    pub fn server_lookup(&self) -> ServerLookup {
        let state = self.state.clone();
        Arc::new(move || state.map.load().connections().find_map(|connection| connection.server()))
    }

    pub fn map(&self) -> Arc<SlotMap> {
        self.state.map.load_full()
    }

    /// The primary that has the keys of a group.
    pub fn primary_of_group(&self, group: u16) -> Option<PrimaryId> {
        self.state.map.load().primary(slot_of_group(group)).map(|primary| primary.id)
    }

    /// The address of a primary.
    pub fn primary_name(&self, id: PrimaryId) -> Option<String> {
        let map = self.state.map.load();
        let primary = map.primaries().find(|primary| primary.id == id);
        primary.map(|primary| primary.server.to_string())
    }

    /// The servers whose slots may have come to another one by a move, complete: the primaries of
    /// the map, and those that gave all their slots to others. One that was replaced after a
    /// failure is not among them.
    pub fn unbroken_servers(&self) -> Vec<Arc<ServerInfo>> {
        let map = self.state.map.load();
        let mut servers: Vec<_> =
            map.primaries().filter_map(|primary| primary.server_info()).collect();
        servers.extend(self.state.retired.lock().iter().cloned());
        servers
    }

    /// Makes one call to the primary of a slot, which is abandoned at `until`. The flag given to
    /// `call` says that another server redirected it and that `ASKING` must be sent first.
    pub async fn round_trip<T, F: Future<Output = RedisResult<T>>>(
        &self,
        slot: u16,
        until: Instant,
        call: impl Fn(LiveConnection, bool) -> F,
    ) -> Result<T, RoundTripError> {
        let time_left = || until.saturating_duration_since(Instant::now());
        let time_allowed = time_left();
        loop {
            let answer = self.try_round_trip(slot, until, time_allowed / 2, &call).await;
            let Err(RoundTripError::Redis { error, .. }) = &answer else { return answer };
            let is_moving = error_code(error).is_some_and(|code| is_moving(&code));
            // With less than half of the time left the call would probably miss its deadline, which
            // marks a healthy connection as down.
            if !is_moving || time_left() <= time_allowed / 2 + MOVE_PAUSE {
                return answer;
            }
            sleep(MOVE_PAUSE).await;
        }
    }

    /// Makes one call, and follows one redirect if at least `time_needed` is left for that.
    async fn try_round_trip<T, F: Future<Output = RedisResult<T>>>(
        &self,
        slot: u16,
        until: Instant,
        time_needed: Duration,
        call: impl Fn(LiveConnection, bool) -> F,
    ) -> Result<T, RoundTripError> {
        let time_left = || until.saturating_duration_since(Instant::now());
        let primary = self.state.map.load().primary(slot).cloned();
        let Some(primary) = primary else {
            self.state.refresh_timer.stale.notify_one();
            let reason = "no server of the cluster has these keys";
            return Err(RoundTripError::NoReply(StoreError::unavailable(reason)));
        };
        let connection = &primary.connection;
        let answer = connection.round_trip(until, |live| call(live, false)).await;
        let Err(RoundTripError::Redis { error, .. }) = &answer else { return answer };
        let Some((server, asking)) = self.redirect_target(error, connection) else {
            return answer;
        };
        let connection = self.state.connection_to(server);
        // The server may be new to this node: then the connection is made in the time that is left.
        let is_up = matches!(timeout(time_left(), connection.wait_until_up()).await, Ok(Ok(())));
        if !is_up || time_left() < time_needed {
            return answer;
        }
        connection.round_trip(until, |live| call(live, asking)).await
    }

    /// The server that a MOVED or ASK error redirects to, and whether `ASKING` must be sent first.
    fn redirect_target(
        &self,
        error: &RedisError,
        connection: &RedisConnection,
    ) -> Option<(RedisAddress, bool)> {
        let ErrorKind::Server(kind) = error.kind() else { return None };
        if kind == ServerErrorKind::Moved || kind == ServerErrorKind::ClusterDown {
            self.state.refresh_timer.stale.notify_one();
        }
        let (address, _) = error.redirect_node()?;
        let (host, port) = address.rsplit_once(':')?;
        // An empty host means the host of the server that was asked.
        let host = match (host, connection.server()) {
            ("" | "?", Some(RedisAddress::Tcp(host, _))) => host,
            (host, _) => host.trim_matches(['[', ']']).to_owned(),
        };
        Some((RedisAddress::Tcp(host, port.parse().ok()?), kind == ServerErrorKind::Ask))
    }
}

impl ClusterState {
    /// Reads the slot map again and again.
    async fn run(self: Arc<Self>) {
        loop {
            let is_down = |connection: &Arc<RedisConnection>| connection.down_reason().is_some();
            self.refresh_timer.wait(|| self.map.load().connections().any(is_down)).await;
            let error = self.refresh().await.err().map(|error| {
                format!("the slot map of the cluster is out of date, no server reports it: {error}")
            });
            self.refresh_error.store(error.map(Arc::new));
        }
    }

    /// Reads the slot map from the first server that answers; if none does, the present one stays.
    async fn refresh(&self) -> Result<(), ConnectError> {
        let map = self.map.load_full();
        let known = map.connections().filter_map(|connection| connection.server());
        let mut failed = ConnectError::Url("it names no server".to_owned());
        for server in known.chain(self.seeds.iter().cloned()) {
            let asked = timeout(self.timeouts.connect, query_slots(&self.settings, &server)).await;
            match asked {
                Ok(Ok(ranges)) => {
                    self.replace_map(&map, ranges);
                    return Ok(());
                }
                Ok(Err(error)) => failed = error,
                Err(_) => {
                    let reason =
                        format!("no answer within {} ms", self.timeouts.connect.as_millis());
                    failed = ConnectError::Unreachable { server: server.to_string(), reason };
                }
            }
        }
        Err(failed)
    }

    fn replace_map(&self, map: &SlotMap, ranges: Vec<SlotRange>) {
        let is_up = |server: &RedisAddress| {
            map.connection_to(server).is_some_and(|connection| connection.down_reason().is_none())
        };
        let changes = self.ids.lock().update(&ranges, Instant::now(), is_up);
        let PrimaryChanges { ids, retired: left, heirs } = changes;
        let has_left = |primary: &&Arc<ClusterPrimary>| left.contains(&primary.server);
        let mut retired = self.retired.lock();
        // A server that is a primary again may be replaced after a failure.
        retired.retain(|info| !ids.contains_key(&info.server));
        retired
            .extend(map.primaries().filter(has_left).filter_map(|primary| primary.server_info()));
        let excess = retired.len().saturating_sub(RETIRED_MAX);
        retired.drain(..excess);
        drop(retired);
        let make = |server: &RedisAddress| self.start(server.clone());
        let map = map.with_ranges(ranges, &ids, make);
        map.primaries().filter(|primary| heirs.contains(&primary.server)).for_each(|primary| {
            primary.count_loss();
        });
        self.map.store(Arc::new(map));
    }

    fn start(&self, server: RedisAddress) -> Arc<RedisConnection> {
        let fixed = FixedServer { settings: self.settings.clone(), server };
        let full_coverage = self.full_coverage.clone();
        let server = ClusterServer { fixed, full_coverage };
        let went_down = self.refresh_timer.went_down.clone();
        Arc::new(RedisConnection::start_watched(server, self.timeouts, went_down))
    }

    /// The connection to a server, started if there is none.
    fn connection_to(&self, server: RedisAddress) -> Arc<RedisConnection> {
        if let Some(connection) = self.map.load().connection_to(&server) {
            return connection;
        }
        let connection = self.start(server.clone());
        self.map.rcu(|map| map.with_connection(server.clone(), connection.clone()));
        connection
    }
}
