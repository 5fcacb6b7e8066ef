//! One listener: binds an address, accepts its connections and hands them to its front end.
//!
//! Without API keys only loopback addresses are served. Accepted connections are never queued:
//! `admission` refuses those above the limits.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use arc_swap::ArcSwap;
use tokio::net::{TcpListener, TcpStream};
use tracing::warn;

use super::admission::Admission;
use super::connections::Connections;
use super::front_end::{AnyFrontEnd, FrontEnd};
use super::table::Peer;
use super::tls::{ListenerTls, Tls};
use crate::config::ReloadableConfig;

/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time between two warnings about failed accepts.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

/// What all listeners of a server share.
#[derive(Clone)]
pub struct ListenerContext {
    /// All connections.
    pub connections: Arc<Connections>,
    /// The keys and the settings that a reload replaces.
    pub reloadable: Arc<ArcSwap<ReloadableConfig>>,
    /// The current certificate, if connections are encrypted.
    pub tls: Option<Arc<Tls>>,
}

/// A bound listener.
pub struct Listener {
    socket: TcpListener,
    handover: Handover,
}

/// Hands accepted connections to the front end.
struct Handover {
    front_end: Arc<dyn AnyFrontEnd>,
    connections: Arc<Connections>,
    reloadable: Arc<ArcSwap<ReloadableConfig>>,
    tls: Option<ListenerTls>,
}

impl Listener {
    /// Binds an address, which must be loopback if there are no API keys.
    pub async fn bind<F: FrontEnd>(
        address: SocketAddr,
        front_end: Arc<F>,
        context: ListenerContext,
    ) -> anyhow::Result<Self> {
        let ListenerContext { connections, reloadable, tls } = context;
        let is_exposed = F::NEEDS_KEYS && !address.ip().is_loopback();
        if is_exposed && !reloadable.load().guard.has_keys() {
            bail!(
                "{address} is not a loopback address, and without API keys anyone could call it; \
                 make a key with `catraca keygen`, or listen on a loopback address such as \
                 127.0.0.1:{}",
                address.port()
            );
        }
        if is_exposed && tls.is_none() {
            warn!(
                %address,
                "API keys are sent to this address unencrypted; set [server] tls_cert and \
                 tls_key, or let only a TLS-terminating proxy reach it"
            );
        }
        let socket =
            TcpListener::bind(address).await.map_err(|error| bind_error(error, address))?;
        let tls = tls.map(|tls| ListenerTls::new(tls, F::ALPN));
        Ok(Self { socket, handover: Handover { front_end, connections, reloadable, tls } })
    }

    /// The address on which it listens; `:0` is resolved.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts connections; never returns.
    pub async fn accept(&self) {
        let mut admission = Admission::new();
        let mut last_warning: Option<Instant> = None;
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => self.handover.admit(&mut admission, stream, peer.ip()),
                // Most likely out of file descriptors. Accepting again at once would spin until one
                // is free.
                Err(error) => {
                    self.handover.connections.metrics.note_accept_failure();
                    if last_warning.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL) {
                        last_warning = Some(Instant::now());
                        warn!(
                            why = %error,
                            "cannot accept connections: callers wait until it is possible again; \
                             raise the limit of open files (ulimit -n) if that is the reason"
                        );
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Accepts what is already in the system's backlog; the port closes when the returned socket
    /// is dropped.
    pub fn accept_backlog(self) -> std::io::Result<std::net::TcpListener> {
        let Self { socket, handover } = self;
        let socket = socket.into_std()?;
        // Directly on the socket: tokio may not have reported all pending connections yet, and
        // closing the port would reset them.
        while let Ok((stream, peer)) = socket.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            let Ok(stream) = stream else {
                handover.connections.metrics.note_accept_failure();
                continue;
            };
            let counted_as = handover.reloadable.load().counted_as(peer.ip());
            handover.serve(stream, peer.ip(), counted_as);
        }
        Ok(socket)
    }
}

impl Handover {
    /// Serves a connection, or refuses it with the front end's text. A TLS client could not read
    /// that, so with TLS the connection is just closed.
    fn admit(&self, admission: &mut Admission, stream: TcpStream, peer: IpAddr) {
        let config = self.reloadable.load();
        match admission.admit(&self.connections, &config, peer) {
            Ok(counted_as) => self.serve(stream, peer, counted_as),
            Err(limit) => {
                let text = self.tls.is_none().then(|| self.front_end.refusal_text(limit));
                admission.refuse(&self.connections.metrics, stream, limit, text);
            }
        }
    }

    fn serve(&self, stream: TcpStream, peer: IpAddr, counted_as: Peer) {
        let guard = self.connections.register(peer, counted_as);
        // Responses are small: do not let Nagle's algorithm delay them.
        let _ = stream.set_nodelay(true);
        let tls = self.tls.as_ref().map(ListenerTls::acceptor);
        Arc::clone(&self.front_end).spawn(stream, tls, guard);
    }
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
