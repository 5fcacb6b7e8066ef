//! The listener: binds, accepts, serves connections, and shuts down gracefully.
//!
//! Without API keys only loopback addresses are served. Accepted connections are never queued:
//! `admission` refuses those above the limits.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::bail;
use tokio::net::{TcpListener, TcpStream};
use tracing::warn;

use super::admission::Admission;
use super::connection::{Connection, unless_stopped};
use super::connections::Connections;
use super::stream::ConnectionStream;
use super::table::Peer;
use crate::context::ServerContext;
use crate::http::connection::serve_http;
use crate::http::{HttpMetrics, router};

/// How long responses in progress may take after a stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The state that all connections share.
pub struct ServerState {
    /// The engine and the settings.
    pub context: Arc<ServerContext>,
    /// Serves every call but the check.
    pub router: axum::Router,
    /// All connections.
    pub connections: Connections,
    /// Response counts and latencies.
    pub metrics: HttpMetrics,
    /// Whether a stop was requested; `/readyz` is then a 503.
    draining: AtomicBool,
    /// How long new connections are still accepted after that.
    stop_delay: Duration,
}

/// What a scrape of metrics reads of the listener.
pub struct ListenerView<'a> {
    /// The engine and its environment.
    pub context: &'a ServerContext,
    /// Response counts and latencies.
    pub metrics: &'a HttpMetrics,
    /// The number of connections.
    pub connections: usize,
    /// The most connections at once.
    pub connections_max: usize,
    /// Whether a stop was requested.
    pub draining: bool,
}

impl ServerState {
    /// Whether a stop was requested.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// The view for a scrape.
    pub fn listener_view(&self) -> ListenerView<'_> {
        let (connections, connections_max) = self.connections.count_and_max();
        ListenerView {
            context: &self.context,
            metrics: &self.metrics,
            connections,
            connections_max,
            draining: self.is_draining(),
        }
    }
}

/// A bound listener that does not accept yet.
pub struct Server {
    listener: TcpListener,
    state: Arc<ServerState>,
}

/// Binds an address, which must be loopback if there are no API keys.
pub async fn bind(address: SocketAddr, context: Arc<ServerContext>) -> anyhow::Result<Server> {
    if !address.ip().is_loopback() && !context.reloadable.load().guard.has_keys() {
        bail!(
            "{address} is not a loopback address, and without API keys anyone could call it; make \
             a key with `catraca keygen`, or listen on a loopback address such as 127.0.0.1:{}",
            address.port()
        );
    }
    if !address.ip().is_loopback() && context.tls.is_none() {
        warn!(
            %address,
            "API keys are sent to this address unencrypted; set [server] tls_cert and tls_key, or \
             let only a TLS-terminating proxy reach it"
        );
    }
    let listener = TcpListener::bind(address).await.map_err(|error| bind_error(error, address))?;
    let router = router::router(Arc::clone(&context));
    let settings = context.reloadable.load().settings.clone();
    let state = ServerState {
        context,
        router,
        connections: Connections::new(settings.connections_max, settings.timeouts),
        metrics: HttpMetrics::default(),
        draining: AtomicBool::new(false),
        stop_delay: settings.stop_delay,
    };
    Ok(Server { listener, state: Arc::new(state) })
}

/// A failed bind with its remedy.
fn bind_error(error: std::io::Error, address: SocketAddr) -> anyhow::Error {
    let port = address.port();
    let hint = match error.kind() {
        ErrorKind::AddrInUse => format!(
            "cannot listen on {address}: another process, maybe another catraca, listens there; \
             stop it (`ss -ltnp 'sport = :{port}'` shows it) or choose another port with \
             --listen {}:0",
            address.ip()
        ),
        ErrorKind::PermissionDenied => format!(
            "cannot listen on {address}: ports below 1024 need a privilege; choose another port \
             with --listen {}:7878",
            address.ip()
        ),
        ErrorKind::AddrNotAvailable => {
            format!("cannot listen on {address}: this machine has no such address")
        }
        _ => format!("cannot listen on {address}"),
    };
    anyhow::Error::new(error).context(hint)
}

impl Server {
    /// The address on which it listens; `:0` is resolved.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` returns, then lets responses in progress finish, unless `stop` returns
    /// again. Returns a summary of the responses.
    pub async fn serve(self, mut stop: impl AsyncFnMut()) -> String {
        let state = Arc::clone(&self.state);
        tokio::select! {
            () = self.accept() => {}
            () = state.connections.run_timeouts() => {}
            () = stop() => self.drain(stop).await,
        }
        state.metrics.to_string()
    }

    /// Accepts connections; never returns.
    async fn accept(&self) {
        let mut admission = Admission::new();
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => match admission.admit(&self.state, peer.ip()) {
                    Ok(counted_as) => serve_stream(&self.state, stream, peer.ip(), counted_as),
                    Err(limit) => admission.refuse(&self.state, stream, limit),
                },
                // Most likely out of file descriptors. Accepting again at once would spin until one
                // is free.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    /// Reports draining in `/readyz`, then keeps accepting for `stop_delay`, so that load balancers
    /// notice before the port closes.
    async fn drain(self, mut stop: impl AsyncFnMut()) {
        self.state.draining.store(true, Ordering::Relaxed);
        self.state.context.locks.refuse_waiters();
        let delay = self.state.stop_delay;
        if !delay.is_zero() {
            tokio::select! {
                () = self.accept() => {}
                () = self.state.connections.run_timeouts() => {}
                () = tokio::time::sleep(delay) => {}
                // The second signal: end without waiting for anything.
                () = stop() => return,
            }
        }
        self.close_port(stop).await;
    }

    /// Accepts what is already in the system's backlog, closes the port, and waits for responses in
    /// progress.
    async fn close_port(self, mut stop: impl AsyncFnMut()) {
        let Self { listener, state } = self;
        let Ok(socket) = listener.into_std() else { return };
        // Directly on the socket: tokio may not have reported all pending connections yet, and
        // closing the port would reset them.
        while let Ok((stream, peer)) = socket.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            if let Ok(stream) = stream {
                let counted_as = state.context.reloadable.load().settings.counted_as(peer.ip());
                serve_stream(&state, stream, peer.ip(), counted_as);
            }
        }
        // Signal first, then close the port: a client that finds it closed knows that all open
        // connections have the signal to stop.
        state.connections.stop_all();
        drop(socket);
        tokio::select! {
            () = state.connections.wait_until_empty() => {}
            () = state.connections.run_timeouts() => {}
            () = tokio::time::sleep(DRAIN_TIMEOUT) => {}
            () = stop() => {}
        }
    }
}

/// Serves an accepted connection in a task of its own, after the TLS handshake if TLS is on.
fn serve_stream(state: &Arc<ServerState>, stream: TcpStream, peer: IpAddr, counted_as: Peer) {
    let connection = Arc::new(Connection::new(Arc::clone(state), peer, counted_as));
    let guard = Connections::admit(Arc::clone(&connection));
    // Responses are small: do not let Nagle's algorithm delay them.
    let _ = stream.set_nodelay(true);
    let Some(tls) = &state.context.tls else {
        let served = serve_http(ConnectionStream::plain(stream), connection);
        tokio::spawn(async move {
            served.await;
            drop(guard);
        });
        return;
    };
    let acceptor = tls.acceptor();
    tokio::spawn(async move {
        match unless_stopped(&connection, acceptor.accept(stream)).await {
            Some(Ok(stream)) => serve_http(ConnectionStream::tls(stream), connection).await,
            Some(Err(_)) => connection.server.metrics.note_tls_failure(),
            None => {}
        }
        drop(guard);
    });
}
