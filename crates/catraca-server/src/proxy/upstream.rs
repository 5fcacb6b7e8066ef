//! One upstream: its address, its idle connections, and whether it failed a moment ago.

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use catraca::client::ServerTls;
use hyper::http::Uri;
use tokio::time::timeout;
use tracing::{info, warn};

use super::connection_pool::{ConnectionPool, PoolLease, PoolPermit};
use super::failure::UpstreamFailure;
use super::request_channel::RequestChannel;
use super::upstream_connection::UpstreamConnection;
use super::upstream_protocol::{ChannelFailure, H2Upstream};
use crate::config::{ProxySection, ProxyTimeouts};

/// So many connections in a row that break make an upstream one that failed.
const BROKEN_MAX: usize = 5;
/// The time between two log lines about the failures of an upstream.
const LOG_INTERVAL_MS: u64 = 10_000;

/// An upstream.
pub struct Upstream {
    /// Its URL, for log lines.
    pub url: String,
    host: String,
    port: u16,
    /// Present if its URL begins with `https`.
    tls: Option<ServerTls>,
    /// Its connections of HTTP/1.1.
    pool: ConnectionPool<UpstreamConnection>,
    /// Absent if its URL begins with `http`.
    h2: Option<H2Upstream>,
    started: Instant,
    /// Milliseconds after `started` until which it gets no requests; zero if it works.
    down_until_ms: AtomicU64,
    broken_in_a_row: AtomicUsize,
    /// Milliseconds after `started` of the last log line about a failure; zero if there was none.
    logged_ms: AtomicU64,
    /// The number of requests of the routes whose first upstream this is.
    pub turns: AtomicUsize,
}

impl Upstream {
    /// The upstream of a URL such as `http://127.0.0.1:9000`. The error says why that is not one,
    /// or why it cannot be verified.
    pub fn new(url: &str, settings: &ProxySection, ca_file: Option<&Path>) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("not a URL: {error}"))?;
        let is_https = uri.scheme_str() == Some("https");
        let is_h2c = uri.scheme_str() == Some("h2c");
        // The brackets of an IPv6 address belong to the URL, not to the address.
        let host = uri
            .host()
            .ok_or("the URL has no host")?
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let tls = is_https.then(|| ServerTls::new(&host, ca_file)).transpose();
        let tls = tls.map_err(|error| error.to_string())?;
        let h2 = (is_https || is_h2c).then(|| H2Upstream::new(&host, port, tls.as_ref(), settings));
        Ok(Self {
            url: url.to_owned(),
            host,
            port,
            tls: tls.map(|tls| tls.offering(&[b"http/1.1"])),
            h2: h2.transpose()?,
            pool: ConnectionPool::new(settings.connections_max, settings.idle_connections),
            started: Instant::now(),
            down_until_ms: AtomicU64::new(0),
            broken_in_a_row: AtomicUsize::new(0),
            logged_ms: AtomicU64::new(0),
            turns: AtomicUsize::new(0),
        })
    }

    /// A connection for a request, and whether it is new. Waits while all connections that are
    /// allowed are in use, in the order of arrival. A request that `upgrades` asks to switch to
    /// another protocol, which HTTP/2 cannot.
    pub async fn connection(
        &self,
        needs_new: bool,
        upgrades: bool,
        timeouts: &ProxyTimeouts,
    ) -> Result<(RequestChannel, bool), UpstreamFailure> {
        if let Some(h2) = &self.h2
            && let Some(found) = self.h2_channel(h2, upgrades, timeouts).await?
        {
            return Ok(found);
        }
        let (connection, is_new) = self.h1_connection(needs_new, timeouts).await?;
        Ok((RequestChannel::Http1(connection), is_new))
    }

    async fn h2_channel(
        &self,
        h2: &H2Upstream,
        upgrades: bool,
        timeouts: &ProxyTimeouts,
    ) -> Result<Option<(RequestChannel, bool)>, UpstreamFailure> {
        if upgrades {
            return if h2.is_only() { Err(UpstreamFailure::NoUpgrade) } else { Ok(None) };
        }
        let found = h2.channel(&self.pool, timeouts).await;
        if let Err(ChannelFailure::Unreachable(Some(why))) = &found {
            self.log_failure(why);
        }
        found.map_err(|failure| failure.kind())
    }

    async fn h1_connection(
        &self,
        needs_new: bool,
        timeouts: &ProxyTimeouts,
    ) -> Result<(UpstreamConnection, bool), UpstreamFailure> {
        let lease = timeout(timeouts.connect, self.pool.acquire(timeouts.keep_alive)).await;
        let permit = match lease {
            Ok(Some(PoolLease::New(permit))) => permit,
            Ok(Some(PoolLease::Idle(mut connection))) => {
                if connection.is_usable() && !needs_new {
                    return Ok((connection, false));
                }
                connection.into_permit()
            }
            Ok(None) | Err(_) => return Err(UpstreamFailure::Busy),
        };
        // Boxed, as other steps that few requests take: the future of a request is copied when it
        // begins, and a TLS handshake would be most of it.
        let connecting = Box::pin(self.connect(permit, timeouts));
        Ok((connecting.await?, true))
    }

    /// Keeps a connection for the next request.
    pub fn give_back(&self, connection: UpstreamConnection) {
        self.pool.give_back(connection);
    }

    /// Closes connections that were not used for some time.
    pub fn close_old_connections(&self, keep_alive: Duration) {
        self.pool.close_old(keep_alive);
        if let Some(h2) = &self.h2 {
            h2.close_old_connections(keep_alive);
        }
    }

    async fn connect(
        &self,
        permit: PoolPermit<UpstreamConnection>,
        timeouts: &ProxyTimeouts,
    ) -> Result<UpstreamConnection, UpstreamFailure> {
        let connecting = UpstreamConnection::open(&self.host, self.port, self.tls.as_ref(), permit);
        match timeout(timeouts.connect, connecting).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => {
                self.log_failure(&error);
                Err(if refuses_http1(&error) {
                    UpstreamFailure::NoUpgrade
                } else {
                    UpstreamFailure::Unreachable
                })
            }
            Err(_) => {
                self.log_failure(&format_args!("no connection within {:?}", timeouts.connect));
                Err(UpstreamFailure::Unreachable)
            }
        }
    }

    /// Whether it failed a moment ago.
    pub fn is_down(&self) -> bool {
        let until = self.down_until_ms.load(Ordering::Relaxed);
        until != 0 && until > self.now_ms()
    }

    /// Gives it no requests for some time.
    pub fn mark_down(&self, down: Duration) {
        let until = self.now_ms() + u64::try_from(down.as_millis()).unwrap_or(u64::MAX / 2).max(1);
        self.down_until_ms.store(until, Ordering::Relaxed);
    }

    /// Notes a connection that broke. One says nothing about the next; several in a row do.
    pub fn on_broken(&self, down: Duration) {
        if self.broken_in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= BROKEN_MAX {
            self.mark_down(down);
        }
    }

    /// Notes that it answered.
    pub fn mark_up(&self) {
        if self.broken_in_a_row.load(Ordering::Relaxed) != 0 {
            self.broken_in_a_row.store(0, Ordering::Relaxed);
        }
        if self.down_until_ms.load(Ordering::Relaxed) != 0 {
            self.down_until_ms.store(0, Ordering::Relaxed);
            info!(upstream = self.url, "the upstream answers again");
        }
    }

    /// Reports the first failure after a success, and at most one every ten seconds; the others
    /// would fill the log.
    pub fn log_failure(&self, why: &dyn std::fmt::Display) {
        let now = self.now_ms().max(1);
        let logged = self.logged_ms.load(Ordering::Relaxed);
        let is_due = logged == 0 || now.saturating_sub(logged) >= LOG_INTERVAL_MS;
        if is_due && self.down_until_ms.load(Ordering::Relaxed) == 0 {
            self.logged_ms.store(now, Ordering::Relaxed);
            warn!(
                upstream = self.url,
                %why,
                "the upstream failed: its requests go to others of the route for down_time, or \
                 get a 502 or 504"
            );
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX / 2)
    }
}

/// Whether an upstream that was offered HTTP/1.1 alone wants another protocol.
fn refuses_http1(error: &std::io::Error) -> bool {
    let tls = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    let alert = rustls::AlertDescription::NoApplicationProtocol;
    tls == Some(&rustls::Error::AlertReceived(alert))
}
