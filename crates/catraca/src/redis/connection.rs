//! A connection to one Redis server that a background task probes, drops and reconnects.
//!
//! A call uses the connection as it is now, or fails at once if there is none; it never waits for a
//! reconnect. A call that gets no answer in time marks the connection as down for all callers until
//! the server answers a probe, so that calls do not queue up behind a server that hangs. Nothing is
//! sent twice.

mod probe;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use redis::RedisResult;
use redis::aio::MultiplexedConnection;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use self::probe::{breaks_connection, jitter, probe};
use super::connect_error::ConnectError;
use super::failure::{RoundTripError, unavailable_reason};
use super::handshake::{ConnectSettings, ReadyConnection, ServerInfo};
use super::options::RedisOptions;
use super::url::RedisAddress;
use crate::store::StoreError;
use crate::supervise::supervise;

/// How often a connection is probed when no call reports a fault: a server that vanished without
/// closing the connection would otherwise go unnoticed.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// How long a probe may take before the connection is dropped, unless calls may take longer.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);
/// The pause before the second attempt to connect; it doubles with every failure.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How long a server may take to answer.
#[derive(Clone, Copy)]
pub(super) struct ConnectionTimeouts {
    /// For connecting, with the handshake.
    pub connect: Duration,
    /// For a probe.
    probe: Duration,
}

impl ConnectionTimeouts {
    pub fn new(options: &RedisOptions) -> Self {
        // A server that is slow enough for the deadline of calls must not lose its connection.
        let probe = PROBE_TIMEOUT.max(options.deadline);
        Self { connect: options.connect_timeout, probe }
    }
}

/// A connection that is reconnected in the background until this value is dropped.
pub(super) struct RedisConnection {
    state: Arc<ConnectionState>,
    tasks: Vec<AbortHandle>,
}

/// What callers and the background task share.
struct ConnectionState {
    status: ArcSwap<ConnectionStatus>,
    /// Wakes the background task. It holds one report: a second one would tell nothing new.
    faults: mpsc::Sender<FaultReport>,
    /// An attempt to connect has ended, with or without success.
    attempted: Notify,
    /// The connection is up again. Stores one notification for a waiter that comes later.
    reconnected: Notify,
    /// The connection went down. Stores one notification; connections may share it.
    went_down: Arc<Notify>,
    /// Why the last attempt to connect failed; empty after a success.
    last_error: ArcSwapOption<ConnectError>,
}

/// Access to a connection for other tasks, without ending it when dropped.
#[derive(Clone)]
pub(super) struct ConnectionHandle(Arc<ConnectionState>);

enum ConnectionStatus {
    Up(LiveConnection),
    /// Why it is down.
    Down(String),
}

/// An established connection, as one call uses it.
#[derive(Clone)]
pub(super) struct LiveConnection {
    pub connection: MultiplexedConnection,
    pub server_info: Arc<ServerInfo>,
    /// Counts the attempts to connect, so that a late report about an earlier connection does not
    /// take down the present one.
    number: u64,
    /// The deadline of the call.
    until: Instant,
}

/// What a call noticed about connection `number`.
#[derive(Clone, Copy)]
struct FaultReport {
    number: u64,
    /// Whether the connection must be replaced. Otherwise it only missed a deadline, and a probe
    /// decides.
    broken: bool,
}

/// Finds the server to use and connects to it.
pub(super) trait ServerConnector: Send + Sync + 'static {
    /// Connects to the server that is primary now.
    fn connect(&self) -> impl Future<Output = Result<ReadyConnection, ConnectError>> + Send;

    /// Where it connects to, for messages.
    fn target(&self) -> String;
}

/// Always the same server.
pub(super) struct FixedServer {
    pub settings: ConnectSettings,
    pub server: RedisAddress,
}

impl ServerConnector for FixedServer {
    async fn connect(&self) -> Result<ReadyConnection, ConnectError> {
        self.settings.connect_checked(&self.server, None).await
    }

    fn target(&self) -> String {
        self.server.to_string()
    }
}

impl Drop for RedisConnection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl RedisConnection {
    /// Starts the background task; does not wait for the connection.
    pub fn start(connector: impl ServerConnector, timeouts: ConnectionTimeouts) -> Self {
        Self::start_watched(connector, timeouts, Arc::default())
    }

    /// As `start`; `went_down` is notified when the connection is lost.
    pub fn start_watched(
        connector: impl ServerConnector,
        timeouts: ConnectionTimeouts,
        went_down: Arc<Notify>,
    ) -> Self {
        let (sender, faults) = mpsc::channel(1);
        let down = ConnectionStatus::Down("not connected yet".to_owned());
        let state = Arc::new(ConnectionState {
            status: ArcSwap::from_pointee(down),
            faults: sender,
            attempted: Notify::new(),
            reconnected: Notify::new(),
            went_down,
            last_error: ArcSwapOption::empty(),
        });
        let reconnector =
            Reconnector { state: state.clone(), connector, timeouts, faults, attempts: 0 };
        let reconnector = Arc::new(tokio::sync::Mutex::new(reconnector));
        let reconnect = supervise("redis connection", move || {
            let reconnector = Arc::clone(&reconnector);
            async move { reconnector.lock().await.run().await }
        });
        Self { state, tasks: vec![tokio::spawn(reconnect).abort_handle()] }
    }

    /// Adds a task that is aborted with the connection.
    pub fn with_task(mut self, task: AbortHandle) -> Self {
        self.tasks.push(task);
        self
    }

    /// Starts the background task and waits until the first attempt to connect has ended.
    pub async fn connect(
        connector: impl ServerConnector,
        timeouts: ConnectionTimeouts,
    ) -> Result<Self, ConnectError> {
        let connection = Self::start(connector, timeouts);
        connection.wait_until_up().await?;
        Ok(connection)
    }

    /// Waits until the connection is up, or an attempt to connect has failed.
    pub async fn wait_until_up(&self) -> Result<(), ConnectError> {
        loop {
            // Created before the status is read, so that an attempt that ends in between is seen.
            let attempted = self.state.attempted.notified();
            if self.down_reason().is_none() {
                return Ok(());
            }
            if let Some(error) = self.state.last_error.load_full() {
                return Err((*error).clone());
            }
            attempted.await;
        }
    }

    /// Access to this connection for other tasks.
    pub fn handle(&self) -> ConnectionHandle {
        ConnectionHandle(self.state.clone())
    }

    /// The address of the server, if the connection is up.
    pub fn server(&self) -> Option<RedisAddress> {
        self.handle().server()
    }

    /// Why the connection is down, if it is.
    pub fn down_reason(&self) -> Option<String> {
        match &**self.state.status.load() {
            ConnectionStatus::Up(_) => None,
            ConnectionStatus::Down(reason) => Some(reason.clone()),
        }
    }

    /// What is known about the server, if the connection is up.
    pub fn server_info(&self) -> Option<Arc<ServerInfo>> {
        self.handle().server_info()
    }

    /// Makes one call, which is abandoned at `until`; fails at once if the connection is down.
    pub async fn round_trip<T, F: Future<Output = RedisResult<T>>>(
        &self,
        until: Instant,
        call: impl FnOnce(LiveConnection) -> F,
    ) -> Result<T, RoundTripError> {
        let time_left = until.saturating_duration_since(Instant::now());
        let live = match &**self.state.status.load() {
            ConnectionStatus::Up(live) => LiveConnection { until, ..live.clone() },
            ConnectionStatus::Down(reason) => {
                return Err(RoundTripError::NoReply(StoreError::unavailable(reason.clone())));
            }
        };
        match timeout_at(until, call(live.clone())).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                let server = live.server_info.server.clone();
                if breaks_connection(&error) {
                    self.state.mark_down(&live, true, unavailable_reason(&server, &error));
                }
                Err(RoundTripError::Redis { server, error })
            }
            Err(_) => {
                let reason = format!("no answer from Redis within {} ms", time_left.as_millis());
                self.state.mark_down(&live, false, reason.clone());
                Err(RoundTripError::NoReply(StoreError::unavailable(reason)))
            }
        }
    }
}

impl LiveConnection {
    /// The call's deadline by the server's clock, in microseconds: the server must not apply the
    /// call after it.
    pub fn latest_server_time(&self) -> i64 {
        self.server_info.clock_offset.to_server_time(self.until)
    }

    /// The same connection with a deadline that is no later than `until`.
    pub fn limited_to(self, until: Instant) -> Self {
        Self { until: self.until.min(until), ..self }
    }
}

impl ConnectionHandle {
    /// The address of the server, if the connection is up.
    pub fn server(&self) -> Option<RedisAddress> {
        self.server_info().map(|server_info| server_info.server.clone())
    }

    /// What is known about the server, if the connection is up.
    pub fn server_info(&self) -> Option<Arc<ServerInfo>> {
        self.live().map(|live| live.server_info)
    }

    /// The connection, if it is up.
    pub fn live(&self) -> Option<LiveConnection> {
        match &**self.0.status.load() {
            ConnectionStatus::Up(live) => Some(live.clone()),
            ConnectionStatus::Down(_) => None,
        }
    }

    /// Completes when the connection has come up since the last completion.
    pub async fn wait_for_reconnect(self) {
        self.0.reconnected.notified().await;
    }

    /// Drops the connection because another server is primary now; a new one is made.
    pub fn reconnect(&self, reason: &str) {
        if let ConnectionStatus::Up(live) = &**self.0.status.load() {
            self.0.mark_down(live, true, reason.to_owned());
        }
    }
}

impl ConnectionState {
    fn mark_up(&self, live: &LiveConnection) {
        self.status.store(Arc::new(ConnectionStatus::Up(live.clone())));
        self.reconnected.notify_one();
    }

    fn mark_down(&self, live: &LiveConnection, broken: bool, reason: String) {
        let status = self.status.load();
        // Compare and swap: a newer connection may have come up meanwhile, and stays up.
        if matches!(&**status, ConnectionStatus::Up(up) if up.number == live.number) {
            self.status.compare_and_swap(&*status, Arc::new(ConnectionStatus::Down(reason)));
            self.went_down.notify_one();
        }
        // If the channel is full, the background task is about to wake up anyway.
        let _ = self.faults.try_send(FaultReport { number: live.number, broken });
    }
}

/// The background task of a connection.
struct Reconnector<C> {
    state: Arc<ConnectionState>,
    connector: C,
    timeouts: ConnectionTimeouts,
    faults: mpsc::Receiver<FaultReport>,
    /// How many times it has tried to connect.
    attempts: u64,
}

impl<C: ServerConnector> Reconnector<C> {
    async fn run(&mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.connect().await {
                Ok(live) => {
                    self.state.mark_up(&live);
                    self.state.last_error.store(None);
                    self.state.attempted.notify_waiters();
                    self.monitor(live).await;
                    pause = FIRST_PAUSE;
                }
                Err(error) => {
                    self.state.status.store(Arc::new(ConnectionStatus::Down(error.to_string())));
                    self.state.last_error.store(Some(Arc::new(error)));
                    self.state.attempted.notify_waiters();
                    sleep(pause.mul_f64(jitter())).await;
                    pause = LONGEST_PAUSE.min(pause * 2);
                }
            }
        }
    }

    async fn connect(&mut self) -> Result<LiveConnection, ConnectError> {
        self.attempts += 1;
        let connected = timeout(self.timeouts.connect, self.connector.connect()).await;
        let ReadyConnection { connection, server_info } = connected.unwrap_or_else(|_| {
            let reason = format!("no answer within {} ms", self.timeouts.connect.as_millis());
            Err(ConnectError::Unreachable { server: self.connector.target(), reason })
        })?;
        // Each call sets its own `until`.
        Ok(LiveConnection { connection, server_info, number: self.attempts, until: Instant::now() })
    }

    /// Probes the connection; returns when it must be replaced. Its status is down then.
    async fn monitor(&mut self, live: LiveConnection) {
        loop {
            let fault = timeout(PROBE_INTERVAL, self.faults.recv()).await.ok().flatten();
            let own_fault = fault.filter(|fault| fault.number == live.number);
            if own_fault.is_some_and(|fault| fault.broken) {
                return;
            }
            if let Err(reason) = probe(live.clone(), self.timeouts.probe).await {
                self.state.status.store(Arc::new(ConnectionStatus::Down(reason)));
                self.state.went_down.notify_one();
                return;
            }
            // A call missed its deadline and marked the connection as down, but the server answers.
            // Its report may be missing: the channel holds only one.
            if own_fault.is_some() || self.is_down() {
                self.state.mark_up(&live);
            }
        }
    }

    fn is_down(&self) -> bool {
        matches!(&**self.state.status.load(), ConnectionStatus::Down(_))
    }
}
