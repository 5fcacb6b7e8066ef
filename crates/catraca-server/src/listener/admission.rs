//! Admission of connections: the limits, closing idle connections to make room, and refusing the
//! rest. Nothing waits here: a connection is served or refused at once.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tracing::warn;

use super::connection_metrics::ConnectionMetrics;
use super::connections::Connections;
use super::refusal;
use super::table::{CONNECTION_LIMITS, ConnectionLimit, Peer};
use crate::config::ReloadableConfig;

/// At most one log line of a kind in this time; a flood of connections must not flood the log.
const LOG_PAUSE: Duration = Duration::from_secs(10);

/// Admits and refuses connections. Owned by the accept loop, so the log pauses need no lock.
pub struct Admission {
    /// Bounds the refusals in progress.
    refusal_permits: Arc<Semaphore>,
    refusal_logs: [LogPause; CONNECTION_LIMITS.len()],
    closing_logs: [LogPause; CONNECTION_LIMITS.len()],
}

impl Admission {
    /// Admission without any log line written.
    pub fn new() -> Self {
        Self {
            refusal_permits: Arc::new(Semaphore::new(refusal::REFUSALS_MAX)),
            refusal_logs: Default::default(),
            closing_logs: Default::default(),
        }
    }

    /// Makes room for a connection from `peer` and returns the address that it counts against. When
    /// a limit is reached, an idle connection is closed; if none is idle, that limit is the error.
    pub fn admit(
        &mut self,
        connections: &Connections,
        config: &ReloadableConfig,
        peer: IpAddr,
    ) -> Result<Peer, ConnectionLimit> {
        let counted_as = config.counted_as(peer);
        let per_address = config.process.server.connections_per_address;
        if let Some(limit) = connections.make_room(counted_as, per_address)? {
            connections.metrics.note_idle_closed(limit);
            if self.closing_logs[limit as usize].is_over() {
                let setting = CONNECTION_LIMITS[limit as usize].1;
                let [closed_full, closed_per_address] = connections.metrics.idle_closed();
                warn!(
                    closed_full,
                    closed_per_address,
                    "{setting} reached: idle connections are closed to make room for new ones"
                );
            }
        }
        Ok(counted_as)
    }

    /// Counts and logs the refusal, sends `text` if there is one, and closes.
    pub fn refuse(
        &mut self,
        metrics: &ConnectionMetrics,
        stream: TcpStream,
        limit: ConnectionLimit,
        text: Option<&'static [u8]>,
    ) {
        metrics.note_refused(limit);
        if self.refusal_logs[limit as usize].is_over() {
            log_refusal(metrics, limit);
        }
        if let Some(text) = text {
            refusal::refuse(stream, text, &self.refusal_permits);
        }
    }
}

fn log_refusal(metrics: &ConnectionMetrics, limit: ConnectionLimit) {
    let [refused_full, refused_per_address] = metrics.refusals();
    match limit {
        ConnectionLimit::Total => warn!(
            refused_full,
            refused_per_address,
            "connection refused: connections_max is reached and no connection is idle; \
             raise it if the machine has enough memory"
        ),
        ConnectionLimit::PerAddress => warn!(
            refused_full,
            refused_per_address,
            "connection refused: its address has connections_per_address connections \
             and none of them is idle; raise it, or add a proxy to [network] trusted_proxies"
        ),
    }
}

/// Rate limit of one kind of log line.
#[derive(Default)]
struct LogPause {
    until: Option<Instant>,
}

impl LogPause {
    /// Whether a line may be written now; if so, the next pause starts.
    fn is_over(&mut self) -> bool {
        let now = Instant::now();
        let over = self.until.is_none_or(|until| now >= until);
        if over {
            self.until = Some(now + LOG_PAUSE);
        }
        over
    }
}
