//! The listener: accept, serve, and stop without losing an answer.
//!
//! Without keys only loopback is served; any other address is refused by name. Must not queue
//! without bound: `admission` refuses a connection for which there is no room.

use std::convert::Infallible;
use std::future::Future;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::bail;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::{TcpListener, TcpStream};
use tracing::warn;

use super::admission::Admission;
use super::connection_table::Peer;
use super::crowd::Crowd;
use super::stream::Stream;
use super::tally::Tally;
use super::visit::{Noted, Obeying, Visit, heeding};
use super::{Front, respond, router};

/// The largest head of a request, and the most lines in it.
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEAD_LINES_MAX: usize = 100;
/// What is read of a connection before somebody takes it.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// How long answers in flight may take after a stop.
const DRAIN: Duration = Duration::from_secs(10);
/// How long to wait for a free descriptor.
const NO_DESCRIPTORS: Duration = Duration::from_millis(50);

/// What all connections share.
pub struct Shared {
    /// The engine and the settings.
    pub front: Front,
    /// Every call but the check.
    pub router: axum::Router,
    /// All connections.
    pub crowd: Crowd,
    /// What was answered.
    pub tally: Tally,
    /// Whether the server was told to stop.
    draining: AtomicBool,
    /// How long it then goes on taking connections.
    stop_delay: Duration,
}

/// What a scrape sees of the listener.
pub struct Listening<'a> {
    /// The engine and all around it.
    pub front: &'a Front,
    /// What was answered.
    pub tally: &'a Tally,
    /// How many connections there are, and how many there may be.
    pub connections: (usize, usize),
    /// Whether the server was told to stop.
    pub draining: bool,
}

impl Shared {
    /// Whether the server was told to stop.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// What a scrape sees.
    pub fn listening(&self) -> Listening<'_> {
        Listening {
            front: &self.front,
            tally: &self.tally,
            connections: self.crowd.size(),
            draining: self.is_draining(),
        }
    }
}

/// A listener that is bound and not yet serving.
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
}

/// Binds an address; without keys it must be loopback.
pub async fn bind(address: SocketAddr, front: Front) -> anyhow::Result<Server> {
    if !address.ip().is_loopback() && !front.live.load().guard.has_keys() {
        bail!(
            "{address} can be reached by others, and there are no keys to tell them apart; make \
             one with `catraca keygen`, or listen on a loopback address such as 127.0.0.1:{}",
            address.port()
        );
    }
    if !address.ip().is_loopback() && front.tls.is_none() {
        warn!(
            %address,
            "keys travel in clear to this address; set [server] tls_cert and tls_key, or let only \
             a proxy that speaks TLS reach it"
        );
    }
    let listener = TcpListener::bind(address).await.map_err(|error| hint(error, address))?;
    let router = router::router(front.clone());
    let live = front.live.load();
    let crowd = Crowd::new(live.settings.connections_max, live.settings.patience);
    let stop_delay = live.settings.stop_delay;
    drop(live);
    let (tally, draining) = (Tally::default(), AtomicBool::new(false));
    let shared = Shared { front, router, crowd, tally, draining, stop_delay };
    Ok(Server { listener, shared: Arc::new(shared) })
}

fn hint(error: std::io::Error, address: SocketAddr) -> anyhow::Error {
    let port = address.port();
    let hint = match error.kind() {
        ErrorKind::AddrInUse => format!(
            "cannot listen on {address}: something else does already, maybe another catraca; \
             stop it (`ss -ltnp 'sport = :{port}'` names it) or choose a port with --listen \
             {}:0",
            address.ip()
        ),
        ErrorKind::PermissionDenied => format!(
            "cannot listen on {address}: ports below 1024 need a privilege; choose another with \
             --listen {}:7878",
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
    /// The address it listens on.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until it is told to stop, then lets answers in flight finish, unless it is told
    /// again. Says what was answered.
    pub async fn serve(self, mut told: impl AsyncFnMut()) -> String {
        let shared = Arc::clone(&self.shared);
        tokio::select! {
            () = self.accept() => {}
            () = shared.crowd.keep() => {}
            () = told() => self.leave(told).await,
        }
        shared.tally.to_string()
    }

    /// Takes every connection that comes; never ends.
    async fn accept(&self) {
        let mut admission = Admission::new();
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => match admission.admit(&self.shared, peer.ip()) {
                    Ok(counted_as) => admit(&self.shared, stream, peer.ip(), counted_as),
                    Err(limit) => admission.refuse(&self.shared, stream, limit),
                },
                // Out of descriptors, most likely: wait for one to come free.
                Err(_) => tokio::time::sleep(NO_DESCRIPTORS).await,
            }
        }
    }

    /// Says that it stops, and goes on for as long as whoever sends us callers needs to hear it.
    async fn leave(self, mut told: impl AsyncFnMut()) {
        self.shared.draining.store(true, Ordering::Relaxed);
        self.shared.front.locks.dismiss();
        let delay = self.shared.stop_delay;
        if !delay.is_zero() {
            tokio::select! {
                () = self.accept() => {}
                () = self.shared.crowd.keep() => {}
                () = tokio::time::sleep(delay) => {}
                () = told() => return,
            }
        }
        self.shut(told).await;
    }

    /// Who is already in the queue is served too; then the door is shut.
    async fn shut(self, mut told: impl AsyncFnMut()) {
        let Self { listener, shared } = self;
        let Ok(door) = listener.into_std() else { return };
        // By asking the system itself: what it has accepted may not have been told to us yet.
        while let Ok((stream, peer)) = door.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            if let Ok(stream) = stream {
                let counted_as = shared.front.live.load().settings.counted_as(peer.ip());
                admit(&shared, stream, peer.ip(), counted_as);
            }
        }
        // First the word and then the door: who finds it shut knows that the others were told.
        shared.crowd.disperse();
        drop(door);
        tokio::select! {
            () = shared.crowd.emptied() => {}
            () = shared.crowd.keep() => {}
            () = tokio::time::sleep(DRAIN) => {}
            () = told() => {}
        }
    }
}

fn admit(shared: &Arc<Shared>, stream: TcpStream, peer: IpAddr, counted_as: Peer) {
    let visit = Arc::new(Visit::new(Arc::clone(shared), peer, counted_as));
    let place = Crowd::admit(Arc::clone(&visit));
    // Small answers must leave at once.
    let _ = stream.set_nodelay(true);
    let Some(tls) = &shared.front.tls else {
        let served = connection(Stream::plain(stream), visit);
        tokio::spawn(async move {
            served.await;
            drop(place);
        });
        return;
    };
    let acceptor = tls.acceptor();
    tokio::spawn(async move {
        match heeding(&visit, acceptor.accept(stream)).await {
            Some(Ok(stream)) => connection(Stream::tls(stream), visit).await,
            Some(Err(_)) => visit.shared.tally.note_strange(),
            None => {}
        }
        drop(place);
    });
}

fn connection(stream: Stream, visit: Arc<Visit>) -> impl Future<Output = ()> {
    let asked = Arc::clone(&visit);
    let service = service_fn(move |request| {
        let visit = Arc::clone(&asked);
        async move { Ok::<_, Infallible>(respond::respond(request, visit).await) }
    });
    let connection = http1::Builder::new()
        // The crowd's patience takes the place of a timer per head.
        .header_read_timeout(None)
        .half_close(true)
        // Answers are small: one copy costs less than two pieces to the system.
        .writev(false)
        .max_headers(HEAD_LINES_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(Noted::new(stream, Arc::clone(&visit)), service);
    Obeying::new(connection, visit)
}
