//! A connection of a client, with what its requests need.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catraca::http_request::ClientCertificate;
use parking_lot::Mutex;

use super::abandoned_requests::AbandonedRequests;
use super::client_phase::{ClientPhase, OpenRequests};
use super::forwarded_headers::SenderCache;
use super::pending_settle::SettleContext;
use super::request_limits::RequestLimits;
use super::settle_watch::SettleWatch;
use super::tunnel::Tunnel;
use super::upstreams::Upstreams;
use crate::context::ServerContext;
use crate::http_wire::framing::AmbiguousLengths;
use crate::listener::Connection;

/// What all connections of the proxy share.
pub struct Proxy {
    /// What all front ends share.
    pub context: Arc<ServerContext>,
    /// The upstreams.
    pub upstreams: Arc<Upstreams>,
    /// The requests that go on without their clients.
    pub abandoned: Arc<AbandonedRequests>,
    /// Bounds what the requests in progress use.
    pub limits: Arc<RequestLimits>,
    /// Settles the checks of long responses in time.
    pub settle_watch: Arc<SettleWatch>,
}

/// A connection of a client, with what its requests need.
pub struct ProxiedConnection {
    /// What all connections share.
    pub proxy: Arc<Proxy>,
    /// What its settles need.
    pub settle: SettleContext,
    /// How the client sent its requests: `http` or `https`.
    pub scheme: &'static str,
    /// The certificate that the client has authenticated with.
    pub certificate: Option<ClientCertificate>,
    /// The headers about the sender of the last request.
    pub sender_cache: SenderCache,
    ambiguous_lengths: AmbiguousLengths,
    /// The number of requests so far.
    requests: AtomicU64,
    /// The open requests, if the connection can have several at once.
    open_requests: Option<Arc<OpenRequests>>,
    tunnel: Mutex<TunnelSlot>,
}

/// The tunnel of a connection that has another protocol after the current response.
#[derive(Default)]
enum TunnelSlot {
    /// No request has set one.
    #[default]
    Empty,
    /// Set by a request.
    Set(Box<Tunnel>),
    /// The connection has ended, or runs its tunnel.
    Closed,
}

impl ProxiedConnection {
    /// A connection without requests.
    pub fn new(
        proxy: Arc<Proxy>,
        settle: SettleContext,
        scheme: &'static str,
        ambiguous_lengths: AmbiguousLengths,
        is_multiplexed: bool,
    ) -> Self {
        Self {
            proxy,
            settle,
            scheme,
            certificate: None,
            sender_cache: SenderCache::default(),
            ambiguous_lengths,
            requests: AtomicU64::new(0),
            open_requests: is_multiplexed.then(Arc::default),
            tunnel: Mutex::default(),
        }
    }

    /// Begins the phases of a request.
    pub fn begin_phase(&self) -> ClientPhase {
        ClientPhase::new(self.connection(), self.open_requests.as_ref())
    }

    /// The tunnel that a request has set, when no response follows. A tunnel that is set later ends
    /// at once: this connection waits for its settle, so that it could not keep the tunnel.
    pub fn close_tunnel_slot(&self) -> Option<Box<Tunnel>> {
        match std::mem::replace(&mut *self.tunnel.lock(), TunnelSlot::Closed) {
            TunnelSlot::Set(tunnel) => Some(tunnel),
            TunnelSlot::Empty | TunnelSlot::Closed => None,
        }
    }

    /// The connection of the listener.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.settle.connection
    }

    /// The connection copies bytes after the current response. The tunnel of a client that has gone
    /// is dropped, which settles its check.
    pub fn set_tunnel(&self, tunnel: Tunnel) {
        let tunnel = Box::new(tunnel);
        let mut slot = self.tunnel.lock();
        if matches!(*slot, TunnelSlot::Closed) {
            // Without the lock: a settle in memory runs in the destructor.
            drop(slot);
            return drop(tunnel);
        }
        *slot = TunnelSlot::Set(tunnel);
    }

    /// Counts a request, and returns whether it states its length twice.
    pub fn begin_request(&self) -> bool {
        let index = self.requests.fetch_add(1, Ordering::Relaxed);
        self.ambiguous_lengths.contains(index)
    }
}
