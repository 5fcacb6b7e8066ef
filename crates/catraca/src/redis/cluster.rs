//! Connections to all primaries of a Redis Cluster, and the map of their slots.
//!
//! All keys of a call are in one slot, and the call goes to the primary of that slot. A server that
//! does not have the slot any more redirects the call without running the script; the redirect is
//! followed once.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::connect_error::ConnectError;
use super::connection::{ConnectionTimeouts, FixedServer, LiveConnection, RedisConnection};
use super::failure::RoundTripError;
use super::handshake::ConnectSettings;
use super::hash_slots::{SlotMap, query_slots};
use super::lock_store::ServerLookup;
use super::url::RedisAddress;
use crate::store::StoreError;

/// How often the slot map is read again while all connections are up.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);
/// The same while a connection is down: a failover changes the map.
const REFRESH_INTERVAL_DOWN: Duration = Duration::from_millis(100);

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
    /// A call noticed that the map is out of date.
    stale: Notify,
    /// Why the map could not be read again, if so.
    refresh_error: ArcSwapOption<String>,
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
        let map = ArcSwap::default();
        let stale = Notify::new();
        let refresh_error = ArcSwapOption::empty();
        let state = ClusterState { settings, timeouts, seeds, map, stale, refresh_error };
        let state = Arc::new(state);
        state.refresh().await?;
        for connection in state.map.load().connections() {
            connection.wait_until_up().await?;
        }
        let task = tokio::spawn(state.clone().run()).abort_handle();
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

    /// Finds one of the connected primaries, the same one as long as it is connected.
    pub fn server_lookup(&self) -> ServerLookup {
        let state = self.state.clone();
        Arc::new(move || state.map.load().connections().find_map(|connection| connection.server()))
    }

    pub fn map(&self) -> Arc<SlotMap> {
        self.state.map.load_full()
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
        let Some(connection) = self.state.map.load().connection(slot) else {
            self.state.stale.notify_one();
            let reason = "no server of the cluster has these keys";
            return Err(RoundTripError::NoReply(StoreError::unavailable(reason)));
        };
        let error = match connection.round_trip(until, |live| call(live, false)).await {
            Err(RoundTripError::Redis(error)) => error,
            other => return other,
        };
        let Some((server, asking)) = self.redirect_target(&error, &connection) else {
            return Err(RoundTripError::Redis(error));
        };
        let connection = self.state.connection_to(server);
        // The server may be new to this node: then the connection is made in the time that is left.
        let is_up = matches!(timeout(time_left(), connection.wait_until_up()).await, Ok(Ok(())));
        // With less than half of the time left the call would probably miss its deadline, which
        // marks a healthy connection as down.
        if !is_up || time_left() < time_allowed / 2 {
            return Err(RoundTripError::Redis(error));
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
            self.state.stale.notify_one();
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
            let is_down =
                self.map.load().connections().any(|connection| connection.down_reason().is_some());
            let pause = if is_down { REFRESH_INTERVAL_DOWN } else { REFRESH_INTERVAL };
            // A call that notices an outdated map ends the pause.
            let _ = timeout(pause, self.stale.notified()).await;
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
                    let make = |server: &RedisAddress| self.start(server.clone());
                    self.map.store(Arc::new(map.with_ranges(ranges, make)));
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

    fn start(&self, server: RedisAddress) -> Arc<RedisConnection> {
        let fixed = FixedServer { settings: self.settings.clone(), server };
        Arc::new(RedisConnection::start(fixed, self.timeouts))
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
