//! HTTP/2 to an upstream: with TLS if both sides want it, and without TLS if its URL begins with
//! `h2c`.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use catraca::client::ServerTls;
use hyper::http::uri::{Authority, Scheme};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::connection_pool::{ConnectionPool, PoolLease};
use super::failure::UpstreamFailure;
use super::request_channel::RequestChannel;
use super::stream_pool::{ConnectTurn, StreamPool, StreamTurn};
use super::upstream_connection::UpstreamConnection;
use super::upstream_h2::H2Connection;
use super::upstream_stream::{Origin, UpstreamStream};
use crate::config::{ProxySection, ProxyTimeouts};

/// For so long an upstream that chose HTTP/1.1 is not asked again.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// The connections of HTTP/2 to an upstream.
pub struct H2Upstream {
    host: String,
    port: u16,
    origin: Origin,
    /// Offers both protocols. Absent without TLS, where nothing is negotiated.
    tls: Option<ServerTls>,
    streams: StreamPool<H2Connection>,
    started: Instant,
    /// Milliseconds after `started` until which it is spoken to in HTTP/1.1; zero for HTTP/2.
    http1_until_ms: AtomicU64,
}

/// Why a request has no channel.
pub enum ChannelFailure {
    /// All streams of all connections are in use.
    Busy,
    /// No connection could be made; the text says why, if this request tried.
    Unreachable(Option<String>),
}

impl ChannelFailure {
    /// The failure of the request.
    pub fn kind(&self) -> UpstreamFailure {
        match self {
            Self::Busy => UpstreamFailure::Busy,
            Self::Unreachable(_) => UpstreamFailure::Unreachable,
        }
    }
}

impl H2Upstream {
    /// HTTP/2 to this host.
    pub fn new(
        host: &str,
        port: u16,
        tls: Option<&ServerTls>,
        settings: &ProxySection,
    ) -> Result<Self, String> {
        let is_ipv6 = host.contains(':');
        let text = if is_ipv6 { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let authority = Authority::try_from(text).map_err(|error| error.to_string())?;
        let scheme = if tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
        Ok(Self {
            host: host.to_owned(),
            port,
            origin: Origin { scheme, authority },
            tls: tls.map(|tls| tls.offering(&[b"h2", b"http/1.1"])),
            streams: StreamPool::new(settings.connections_max, settings.idle_connections),
            started: Instant::now(),
            http1_until_ms: AtomicU64::new(0),
        })
    }

    /// Whether the upstream speaks no HTTP/1.1.
    pub fn is_only(&self) -> bool {
        self.tls.is_none()
    }

    /// Closes connections that were not used for some time.
    pub fn close_old_connections(&self, keep_alive: Duration) {
        self.streams.close_old(keep_alive);
    }

    /// A channel for a request, and whether its connection is new; none if the upstream chose
    /// HTTP/1.1. Waits while all streams are in use, in the order of arrival.
    pub async fn channel(
        &self,
        pool: &ConnectionPool<UpstreamConnection>,
        timeouts: &ProxyTimeouts,
    ) -> Result<Option<(RequestChannel, bool)>, ChannelFailure> {
        if self.uses_http1() {
            return Ok(None);
        }
        self.streams.close_old(timeouts.keep_alive);
        match timeout(timeouts.connect, self.streams.acquire()).await {
            Ok(Some(StreamTurn::Stream(lease))) => {
                let stream = UpstreamStream::new(lease, self.origin.clone());
                let is_new = stream.is_new();
                Ok(Some((RequestChannel::Http2(stream), is_new)))
            }
            Ok(Some(StreamTurn::Connect(turn))) => self.connect(turn, pool, timeouts).await,
            Ok(Some(StreamTurn::NotHttp2)) => Ok(None),
            Ok(Some(StreamTurn::Failed)) => Err(ChannelFailure::Unreachable(None)),
            Ok(None) | Err(_) => Err(ChannelFailure::Busy),
        }
    }

    async fn connect(
        &self,
        turn: ConnectTurn<H2Connection>,
        pool: &ConnectionPool<UpstreamConnection>,
        timeouts: &ProxyTimeouts,
    ) -> Result<Option<(RequestChannel, bool)>, ChannelFailure> {
        let opened = timeout(timeouts.connect, self.open()).await;
        let why = match opened {
            Ok(Ok(NewConnection::Http2(connection))) => {
                self.http1_until_ms.store(0, Ordering::Relaxed);
                let stream = UpstreamStream::new(turn.finish(connection), self.origin.clone());
                return Ok(Some((RequestChannel::Http2(stream), true)));
            }
            Ok(Ok(NewConnection::Http1(stream))) => {
                let until = self.now_ms() + millis(ASK_AGAIN);
                self.http1_until_ms.store(until, Ordering::Relaxed);
                turn.on_other_protocol();
                return self.use_http1(stream, pool, timeouts).await;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no connection within {:?}", timeouts.connect),
        };
        turn.fail();
        if self.http1_until_ms.load(Ordering::Relaxed) != 0 {
            // It spoke HTTP/1.1, and may have connections that are idle.
            return Ok(None);
        }
        Err(ChannelFailure::Unreachable(Some(why)))
    }

    /// Whether a request goes to an upstream that chose HTTP/1.1. From time to time, one request
    /// asks it again, while the others go on.
    fn uses_http1(&self) -> bool {
        let until = self.http1_until_ms.load(Ordering::Relaxed);
        let now = self.now_ms();
        if until == 0 || until > now {
            return until != 0;
        }
        let next = now + millis(ASK_AGAIN);
        let swapped =
            self.http1_until_ms.compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed);
        swapped.is_err()
    }

    /// Uses a connection on which the upstream chose HTTP/1.1.
    async fn use_http1(
        &self,
        stream: TlsStream,
        pool: &ConnectionPool<UpstreamConnection>,
        timeouts: &ProxyTimeouts,
    ) -> Result<Option<(RequestChannel, bool)>, ChannelFailure> {
        match timeout(timeouts.connect, pool.acquire(timeouts.keep_alive)).await {
            Ok(Some(PoolLease::New(permit))) => {
                let begun = UpstreamConnection::begin(stream, permit).await;
                let connection =
                    begun.map_err(|error| ChannelFailure::Unreachable(Some(error.to_string())))?;
                Ok(Some((RequestChannel::Http1(connection), true)))
            }
            Ok(Some(PoolLease::Idle(connection))) => {
                // The pool has one, and this one is not needed.
                pool.give_back(connection);
                Ok(None)
            }
            Ok(None) | Err(_) => Err(ChannelFailure::Busy),
        }
    }

    async fn open(&self) -> io::Result<NewConnection> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            return H2Connection::open(stream).await.map(NewConnection::Http2);
        };
        let stream = tls.handshake(stream).await?;
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            return H2Connection::open(stream).await.map(NewConnection::Http2);
        }
        Ok(NewConnection::Http1(stream))
    }

    fn now_ms(&self) -> u64 {
        millis(self.started.elapsed())
    }
}

type TlsStream = tokio_rustls::client::TlsStream<TcpStream>;

/// A new connection, with the protocol that the upstream chose.
enum NewConnection {
    Http2(H2Connection),
    Http1(TlsStream),
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 2)
}
