//! One upstream: its address, its idle connections, and whether it failed a moment ago.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Context;
use std::time::{Duration, Instant};

use catraca::client::ServerTls;
use hyper::http::Uri;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tracing::{info, warn};

use super::failure::UpstreamFailure;
use super::upstream_connection::UpstreamConnection;
use crate::config::{ProxySection, ProxyTimeouts};

/// An upstream.
pub struct Upstream {
    /// Its URL, for log lines.
    pub url: String,
    host: String,
    port: u16,
    /// Present if its URL begins with `https`.
    tls: Option<ServerTls>,
    connections: Arc<Semaphore>,
    idle_max: usize,
    /// The one that was used last is at the end, so that those of a peak become old.
    idle: Mutex<Vec<IdleConnection>>,
    started: Instant,
    /// Milliseconds after `started` until which it gets no requests; zero if it works.
    down_until_ms: AtomicU64,
    /// The number of requests of the routes whose first upstream this is.
    pub turns: AtomicUsize,
}

struct IdleConnection {
    connection: UpstreamConnection,
    since: Instant,
}

impl Upstream {
    /// The upstream of a URL such as `http://127.0.0.1:9000`; none if that is not one, or if there
    /// are no certificates to verify it with.
    pub fn new(url: &str, settings: &ProxySection, ca_file: Option<&Path>) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let is_https = uri.scheme_str() == Some("https");
        // The brackets of an IPv6 address belong to the URL, not to the address.
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let tls = is_https.then(|| ServerTls::new(&host, ca_file)).transpose();
        let tls = tls.map_err(|error| warn!(upstream = url, %error, "the upstream cannot be used"));
        Some(Self {
            url: url.to_owned(),
            host,
            port,
            tls: tls.ok()?,
            connections: Arc::new(Semaphore::new(settings.connections_max)),
            idle_max: settings.idle_connections,
            idle: Mutex::default(),
            started: Instant::now(),
            down_until_ms: AtomicU64::new(0),
            turns: AtomicUsize::new(0),
        })
    }

    /// An idle connection that is still open.
    pub fn take_idle(
        &self,
        cx: &mut Context<'_>,
        keep_alive: Duration,
    ) -> Option<UpstreamConnection> {
        loop {
            let idle = self.idle.lock().pop()?;
            let mut connection = idle.connection;
            if idle.since.elapsed() < keep_alive && connection.is_usable(cx) {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection for the next request.
    pub fn give_back(&self, connection: UpstreamConnection) {
        let mut idle = self.idle.lock();
        if idle.len() < self.idle_max {
            idle.push(IdleConnection { connection, since: Instant::now() });
        }
    }

    /// Closes connections that were not used for some time.
    pub fn close_old_connections(&self, keep_alive: Duration) {
        let mut old = Vec::new();
        let mut idle = self.idle.lock();
        let first_young = idle.iter().position(|one| one.since.elapsed() < keep_alive);
        let count = first_young.unwrap_or(idle.len());
        old.extend(idle.drain(..count));
        drop(idle);
        // Closed here, without the lock.
        drop(old);
    }

    /// Makes a connection.
    pub async fn connect(
        &self,
        timeouts: &ProxyTimeouts,
    ) -> Result<UpstreamConnection, UpstreamFailure> {
        let permit = self.permit(timeouts).await?;
        let connecting = UpstreamConnection::open(&self.host, self.port, self.tls.as_ref(), permit);
        match timeout(timeouts.connect, connecting).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => {
                self.log_failure(&error);
                Err(UpstreamFailure::Unreachable)
            }
            Err(_) => {
                self.log_failure(&format_args!("no connection within {:?}", timeouts.connect));
                Err(UpstreamFailure::Unreachable)
            }
        }
    }

    async fn permit(
        &self,
        timeouts: &ProxyTimeouts,
    ) -> Result<OwnedSemaphorePermit, UpstreamFailure> {
        let permit = Arc::clone(&self.connections).acquire_owned();
        match timeout(timeouts.connect, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(UpstreamFailure::Busy),
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

    /// Notes that it answered.
    pub fn mark_up(&self) {
        if self.down_until_ms.load(Ordering::Relaxed) != 0 {
            self.down_until_ms.store(0, Ordering::Relaxed);
            info!(upstream = self.url, "the upstream answers again");
        }
    }

    /// Reports the first failure after a success; the others would fill the log.
    pub fn log_failure(&self, why: &dyn std::fmt::Display) {
        if self.down_until_ms.load(Ordering::Relaxed) == 0 {
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
